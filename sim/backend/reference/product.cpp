// SPDX-License-Identifier: Apache-2.0
// Convolution and dense layers as direct loops. The innermost loop runs over adjacent sums.
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/backend/check_shapes.hpp"
#include "sim/backend/reference/backend.hpp"
#include "sim/backend/reference/sums.hpp"

namespace halfscope::sim::backend::reference {
namespace {

using Index = std::int64_t;

/// Sizes of a convolution: images, input height, width, channels, output height, width, channels.
struct Sizes {
  Index n, h, w, c, p, q, k;
  int kernel, stride, padding;

  Index taps() const { return Index{kernel} * kernel; }
  /// Returns the input row or column that tap r of output position p reads; may be outside.
  Index in(Index position, Index tap) const { return position * stride + tap - padding; }
};

Sizes sizes_of(const Convolution& conv, const Shape& x, const Shape& y) {
  return {x[0], x[1], x[2], x[3], y[1], y[2], y[3], conv.kernel, conv.stride, conv.padding};
}

/// Returns the sizes of a dense layer as a convolution of images of one pixel.
Sizes sizes_of_dense(const Tensor& x, const Tensor& y) {
  const Index n = x.shape[0];
  return {n, 1, 1, x.size() / n, 1, 1, y.size() / n, 1, 1, 0};
}

/// Array of `count` compensated sums.
struct Sums {
  explicit Sums(std::size_t count) : high(count), low(count) {}
  std::vector<double> high, low;
  void start(double value) {
    std::ranges::fill(high, value);
    std::ranges::fill(low, 0.0);
  }
};

/// Returns the transpose of a (rows, columns) matrix.
std::vector<double> transposed(std::span<const double> from, Index rows, Index columns) {
  std::vector<double> to(from.size());
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) to[at(j * rows + i)] = from[at(i * columns + j)];
  }
  return to;
}

void forward(const Sizes& z, std::span<const double> x, std::span<const double> w,
             std::span<const double> b, std::span<double> y) {
  const std::vector<double> taps = transposed(w, z.k, z.taps() * z.c);  // (R, S, C, K)
  tbb::parallel_for(Index{0}, z.n * z.p, [&](Index row) {
    Sums sums(at(z.k));
    const Index n = row / z.p, p = row % z.p;
    for (Index q = 0; q < z.q; ++q) {
      sums.start(0);
      std::copy(b.begin(), b.end(), sums.high.begin());
      for (Index tap = 0; tap < z.taps(); ++tap) {
        const Index h = z.in(p, tap / z.kernel), v = z.in(q, tap % z.kernel);
        if (h < 0 || h >= z.h || v < 0 || v >= z.w) continue;
        for (Index c = 0; c < z.c; ++c) {
          add_products(x[at(((n * z.h + h) * z.w + v) * z.c + c)], &taps[at((tap * z.c + c) * z.k)],
                       sums.high.data(), sums.low.data(), at(z.k));
        }
      }
      double* out = &y[at((row * z.q + q) * z.k)];
      for (Index k = 0; k < z.k; ++k) out[k] = sum_of(sums.high[at(k)], sums.low[at(k)]);
    }
  });
}

/// Returns the output position whose tap reads this input position, or -1.
Index reader(const Sizes& z, Index in, Index tap, Index positions) {
  const Index shifted = in + z.padding - tap;
  if (shifted < 0 || shifted % z.stride != 0) return -1;
  return shifted / z.stride < positions ? shifted / z.stride : -1;
}

void data_gradient(const Sizes& z, std::span<const double> dy, std::span<const double> w,
                   std::span<double> dx) {
  tbb::parallel_for(Index{0}, z.n * z.h, [&](Index row) {
    Sums sums(at(z.c));
    const Index n = row / z.h, h = row % z.h;
    for (Index v = 0; v < z.w; ++v) {
      sums.start(0);
      for (Index tap = 0; tap < z.taps(); ++tap) {
        const Index p = reader(z, h, tap / z.kernel, z.p), q = reader(z, v, tap % z.kernel, z.q);
        if (p < 0 || q < 0) continue;
        for (Index k = 0; k < z.k; ++k) {
          add_products(dy[at(((n * z.p + p) * z.q + q) * z.k + k)],
                       &w[at((k * z.taps() + tap) * z.c)], sums.high.data(), sums.low.data(),
                       at(z.c));
        }
      }
      double* out = &dx[at((row * z.w + v) * z.c)];
      for (Index c = 0; c < z.c; ++c) out[c] = sum_of(sums.high[at(c)], sums.low[at(c)]);
    }
  });
}

void weight_gradient(const Sizes& z, std::span<const double> x, std::span<const double> dy,
                     std::span<double> dw, bool add) {
  const Index rows = z.taps() * z.c;
  tbb::parallel_for(Index{0}, rows, [&](Index row) {
    Sums sums(at(z.k));
    for (Index k = 0; add && k < z.k; ++k) sums.high[at(k)] = dw[at(k * rows + row)];
    const Index tap = row / z.c, c = row % z.c;
    for (Index np = 0; np < z.n * z.p; ++np) {
      const Index h = z.in(np % z.p, tap / z.kernel);
      if (h < 0 || h >= z.h) continue;
      for (Index q = 0; q < z.q; ++q) {
        const Index v = z.in(q, tap % z.kernel);
        if (v < 0 || v >= z.w) continue;
        add_products(x[at(((np / z.p * z.h + h) * z.w + v) * z.c + c)],
                     &dy[at((np * z.q + q) * z.k)], sums.high.data(), sums.low.data(), at(z.k));
      }
    }
    for (Index k = 0; k < z.k; ++k) {
      dw[at(k * rows + row)] = sum_of(sums.high[at(k)], sums.low[at(k)]);
    }
  });
}

std::span<const double> values_or_none(const Tensor& tensor) {
  return tensor ? values(tensor) : std::span<const double>();
}

}  // namespace

void ReferenceBackend::conv_forward(const Convolution& conv, const Tensor& x, const Tensor& w,
                                    const Tensor& b, Tensor& y) {
  forward(sizes_of(conv, x.shape, y.shape), values(x), values(w), values_or_none(b), values(y));
}

void ReferenceBackend::conv_data_gradient(const Convolution& conv, const Tensor& dy,
                                          const Tensor& w, Tensor& dx) {
  data_gradient(sizes_of(conv, dx.shape, dy.shape), values(dy), values(w), values(dx));
}

void ReferenceBackend::conv_weight_gradient(const Convolution& conv, const Tensor& x,
                                            const Tensor& dy, Tensor& dw, bool add) {
  weight_gradient(sizes_of(conv, x.shape, dy.shape), values(x), values(dy), values(dw), add);
}

void ReferenceBackend::dense_forward(const Tensor& x, const Tensor& w, const Tensor& b, Tensor& y) {
  forward(sizes_of_dense(x, y), values(x), values(w), values_or_none(b), values(y));
}

void ReferenceBackend::dense_data_gradient(const Tensor& dy, const Tensor& w, Tensor& dx) {
  data_gradient(sizes_of_dense(dx, dy), values(dy), values(w), values(dx));
}

void ReferenceBackend::dense_weight_gradient(const Tensor& x, const Tensor& dy, Tensor& dw,
                                             bool add) {
  weight_gradient(sizes_of_dense(x, dy), values(x), values(dy), values(dw), add);
}

void ReferenceBackend::bias_gradient(const Tensor& dy, Tensor& db, bool add) {
  const std::span<const double> in = values(dy);
  const std::span<double> out = values(db);
  for (std::size_t k = 0; k < out.size(); ++k) {
    Sum sum(add ? out[k] : 0);
    for (std::size_t i = k; i < in.size(); i += out.size()) sum.add(in[i]);
    out[k] = sum.value();
  }
}

}  // namespace halfscope::sim::backend::reference
