// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/backend/cudnn/kernels/element.hpp"
#include "sim/backend/cudnn/kernels/kernels.hpp"

namespace halfscope::sim::backend::cudnn::kernels {
namespace {

using cuda::launch;

/// Windows with extents of type N. Each element needs several divisions: 32-bit ones are faster.
template <class N>
struct Extents {
  explicit Extents(const Windows& g)
      : kernel(N(g.kernel)),
        stride(N(g.stride)),
        h(N(g.h)),
        w(N(g.w)),
        c(N(g.c)),
        p(N(g.p)),
        q(N(g.q)) {}
  N kernel, stride, h, w, c, p, q;
};

/// Returns the position of the window's largest value in the image, as y * w + x.
template <class T, class N>
__device__ N place_of_largest(const Extents<N>& g, const T* image, N p, N q) {
  const N first = p * g.stride * g.w + q * g.stride;
  float best = -INFINITY;
  N place = first;  // used if all values of the window are -infinity
  for (N r = 0; r < g.kernel; ++r) {
    for (N s = 0; s < g.kernel; ++s) {
      const N at = first + r * g.w + s;
      const float value = wide(image[at * g.c]);
      if (value > best || (value != value && best == best)) {
        best = value;
        place = at;
      }
    }
  }
  return place;
}

/// Runs one thread per element of dx. It adds the gradients of its windows' maxima, in order.
template <class T, class N>
__global__ void max_pool_kernel(Extents<N> g, const T* x, const T* dy, T* dx, N count) {
  for (N i = static_cast<N>(first_element()); i < count; i += static_cast<N>(element_stride())) {
    const N c = i % g.c, column = i / g.c % g.w, row = i / g.c / g.w % g.h;
    const N n = i / g.c / g.w / g.h;
    const T* const image = x + n * g.h * g.w * g.c + c;
    const N first_p = row < g.kernel ? 0 : (row - g.kernel) / g.stride + 1;
    const N first_q = column < g.kernel ? 0 : (column - g.kernel) / g.stride + 1;
    float sum = 0;
    for (N p = first_p; p < g.p && p * g.stride <= row; ++p) {
      for (N q = first_q; q < g.q && q * g.stride <= column; ++q) {
        if (place_of_largest(g, image, p, q) != row * g.w + column) continue;
        sum += wide(dy[((n * g.p + p) * g.q + q) * g.c + c]);
      }
    }
    dx[i] = narrow<T>(sum);
  }
}

}  // namespace

void max_pool_backward(const Windows& windows, Elements x, Elements dy, Elements dx,
                       cudaStream_t stream) {
  const std::int64_t count = windows.n * windows.h * windows.w * windows.c;
  with_type(x.dtype, [&]<class T>(T) {
    const auto start = [&]<class N>(N) {
      launch("max_pool_backward", max_pool_kernel<T, N>, {.blocks = blocks_of(count)}, stream,
             Extents<N>(windows), static_cast<const T*>(x.data), static_cast<const T*>(dy.data),
             static_cast<T*>(dx.data), static_cast<N>(count));
    };
    constexpr std::int64_t kMost = std::int64_t{1} << 31;  // i + element_stride() has 32 bits, too
    count < kMost ? start(std::uint32_t{}) : start(std::uint64_t{});
  });
}

}  // namespace halfscope::sim::backend::cudnn::kernels
