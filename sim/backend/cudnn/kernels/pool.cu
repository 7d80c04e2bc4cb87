// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/backend/cudnn/kernels/element.hpp"
#include "sim/backend/cudnn/kernels/kernels.hpp"

namespace halfscope::sim::backend::cudnn::kernels {
namespace {

using cuda::launch;

/// Returns the position of the window's largest value in the image, as y * w + x.
template <class T>
__device__ std::int64_t place_of_largest(const Windows& g, const T* image, std::int64_t p,
                                         std::int64_t q) {
  const std::int64_t first = p * g.stride * g.w + q * g.stride;
  float best = -INFINITY;
  std::int64_t place = first;  // used if all values of the window are -infinity
  for (std::int64_t r = 0; r < g.kernel; ++r) {
    for (std::int64_t s = 0; s < g.kernel; ++s) {
      const std::int64_t at = first + r * g.w + s;
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
template <class T>
__global__ void max_pool_kernel(Windows g, const T* x, const T* dy, T* dx, std::int64_t count) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const std::int64_t c = i % g.c, column = i / g.c % g.w, row = i / (g.c * g.w) % g.h;
    const std::int64_t n = i / (g.c * g.w * g.h);
    const T* const image = x + n * g.h * g.w * g.c + c;
    const std::int64_t first_p = row < g.kernel ? 0 : (row - g.kernel) / g.stride + 1;
    const std::int64_t first_q = column < g.kernel ? 0 : (column - g.kernel) / g.stride + 1;
    float sum = 0;
    for (std::int64_t p = first_p; p < g.p && p * g.stride <= row; ++p) {
      for (std::int64_t q = first_q; q < g.q && q * g.stride <= column; ++q) {
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
    launch("max_pool_backward", max_pool_kernel<T>, {.blocks = blocks_of(count)}, stream, windows,
           static_cast<const T*>(x.data), static_cast<const T*>(dy.data), static_cast<T*>(dx.data),
           count);
  });
}

}  // namespace halfscope::sim::backend::cudnn::kernels
