// SPDX-License-Identifier: Apache-2.0
// Convolutions as products of matrices (im2col; Chellapilla, Puri and Simard 2006). Windows are
// gathered in groups that fit the cache. cuDNN calls this operation cross-correlation.
#include "sim/backend/check_shapes.hpp"
#include "sim/backend/cpu/backend.hpp"
#include "sim/backend/cpu/product.hpp"
#include "sim/backend/cpu/store.hpp"
#include "sim/backend/cpu/window.hpp"

namespace halfscope::sim::backend::cpu {
namespace {

Window windows_of(const Convolution& conv, const ConvolutionExtents& e) {
  return {e.h,         e.w,           e.c,           e.p,         e.q,
          conv.stride, -conv.padding, -conv.padding, conv.kernel, conv.kernel};
}

/// Returns the rows of a product: gathered, or the image itself if its layout already fits.
MatrixAt<const float> rows_of(const Window& window, const float* images, std::int64_t first,
                              std::int64_t count) {
  const std::int64_t depth = window.depth();
  if (window.plain()) return {images + first * depth, depth};
  float* gathered = scratch(0, count * depth);
  gather(window, images, first, count, gathered);
  return {gathered, depth};
}

/// In one dimension of an image: the pixels of dx that the same taps of the kernel reach.
struct Phase {
  std::int64_t first, count;  ///< pixels first, first + stride, ...
  std::int64_t last_tap, taps;
  std::int64_t start;  ///< position in dy of the first pixel's window

  Phase(const Convolution& conv, std::int64_t extent, std::int64_t phase) {
    const std::int64_t stride = conv.stride;
    first = ((phase - conv.padding) % stride + stride) % stride;
    count = first < extent ? (extent - first + stride - 1) / stride : 0;
    taps = phase < conv.kernel ? (conv.kernel - phase + stride - 1) / stride : 0;
    last_tap = phase + (taps - 1) * stride;
    start = taps == 0 ? 0 : (first + conv.padding - last_tap) / stride;
  }
};

/// Returns the weights between dy and one phase of dx, (taps, K, C). The order of taps is the
/// reverse of the order of dy's pixels.
std::vector<float> weights_of(const Convolution& conv, const ConvolutionExtents& e, const float* w,
                              const Phase& down, const Phase& across) {
  std::vector<float> taken(static_cast<std::size_t>(down.taps * across.taps * e.k * e.c));
  float* to = taken.data();
  for (std::int64_t i = 0; i < down.taps; ++i) {
    for (std::int64_t j = 0; j < across.taps; ++j) {
      const std::int64_t r = down.last_tap - i * conv.stride;
      const std::int64_t s = across.last_tap - j * conv.stride;
      for (std::int64_t k = 0; k < e.k; ++k, to += e.c) {
        std::copy_n(w + ((k * conv.kernel + r) * conv.kernel + s) * e.c, e.c, to);
      }
    }
  }
  return taken;
}

/// Copies the rows of one phase to their pixels of dx.
void scatter(const Convolution& conv, const ConvolutionExtents& e, const Phase& down,
             const Phase& across, const float* from, std::int64_t first, std::int64_t count,
             float* dx) {
  for (std::int64_t i = first; i < first + count; ++i, from += e.c) {
    const std::int64_t n = i / (down.count * across.count), row = i / across.count % down.count;
    const std::int64_t y = down.first + row * conv.stride;
    const std::int64_t x = across.first + i % across.count * conv.stride;
    std::copy_n(from, e.c, dx + ((n * e.h + y) * e.w + x) * e.c);
  }
}

}  // namespace

void CpuBackend::conv_forward(const Convolution& conv, const Tensor& x, const Tensor& w,
                              const Tensor& b, Tensor& y) {
  const ConvolutionExtents e = require_convolution(conv, x.shape, w.shape, y.shape);
  const Window window = windows_of(conv, e);
  const std::int64_t depth = window.depth();
  const float *in = data(x), *bias = bias_of(b, e.k);
  float* out = data(y);
  const std::vector<float> weights = transposed(data(w), e.k, depth);
  const Sums sums = sums_of(x, w, y);
  parallel_parts(
      e.n * e.p * e.q, windows_at_a_time(depth), [&](std::int64_t first, std::int64_t count) {
        float* rows = out + first * e.k;
        backend::cpu::multiply(sums, {count, e.k, depth}, rows_of(window, in, first, count),
                               {weights.data(), e.k}, {rows, e.k});
        finish({rows, e.k}, count, e.k, bias, y.dtype);
      });
}

void CpuBackend::conv_data_gradient(const Convolution& conv, const Tensor& dy, const Tensor& w,
                                    Tensor& dx) {
  const ConvolutionExtents e = require_convolution(conv, dx.shape, w.shape, dy.shape);
  const float *in = data(dy), *weights = data(w);
  float* out = data(dx);
  const Sums sums = sums_of(dy, w, dx);
  if (conv.stride > conv.kernel) std::fill_n(out, dx.size(), 0.0f);  // pixels that no tap reaches
  for (std::int64_t phase = 0; phase < std::int64_t{conv.stride} * conv.stride; ++phase) {
    const Phase down(conv, e.h, phase / conv.stride), across(conv, e.w, phase % conv.stride);
    if (down.taps * across.taps * down.count * across.count == 0) continue;
    const std::vector<float> taken = weights_of(conv, e, weights, down, across);
    const Window window = {e.p, e.q,        e.k,          down.count, across.count,
                           1,   down.start, across.start, down.taps,  across.taps};
    const std::int64_t depth = window.depth();
    parallel_parts(
        e.n * window.grid(), windows_at_a_time(depth), [&](std::int64_t first, std::int64_t count) {
          float* rows = conv.stride == 1 ? out + first * e.c : scratch(1, count * e.c);
          backend::cpu::multiply(sums, {count, e.c, depth}, rows_of(window, in, first, count),
                                 {taken.data(), e.c}, {rows, e.c});
          round_values(dx.dtype, rows, count * e.c);
          if (conv.stride > 1) scatter(conv, e, down, across, rows, first, count, out);
        });
  }
}

void CpuBackend::conv_weight_gradient(const Convolution& conv, const Tensor& x, const Tensor& dy,
                                      Tensor& dw, bool add) {
  const ConvolutionExtents e = require_convolution(conv, x.shape, dw.shape, dy.shape);
  const Window window = windows_of(conv, e);
  const float *in = data(x), *gradients = data(dy);
  const std::int64_t depth = window.depth(), all = e.n * e.p * e.q;
  const std::int64_t part = windows_at_a_time(depth);
  std::vector<float> sum(static_cast<std::size_t>(e.k * depth));
  if (const Sums sums = sums_of(x, dy, dw); !sums.plain()) {  // one sequential sum over all windows
    std::vector<float> gathered(static_cast<std::size_t>(part * depth));
    for (std::int64_t first = 0; first < all; first += part) {
      const std::int64_t count = std::min(part, all - first);
      parallel_parts(count, part / 16, [&](std::int64_t some, std::int64_t n) {
        gather(window, in, first + some, n, gathered.data() + some * depth);
      });
      accumulate(sums, {e.k, depth, count}, {gradients + first * e.k, 1, e.k},
                 {gathered.data(), depth}, {sum.data(), depth});
    }
  } else {
    sum_of_parts(all, part, sum, [&](std::int64_t first, std::int64_t count, float* to) {
      product_kernels().add_left_transposed({e.k, depth, count}, {gradients + first * e.k, e.k},
                                            rows_of(window, in, first, count), {to, depth});
    });
  }
  store_gradient(sum, add, dw);
}

}  // namespace halfscope::sim::backend::cpu
