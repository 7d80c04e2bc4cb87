// SPDX-License-Identifier: Apache-2.0
// Dense layers, y = x w^T + b, and sums of gradients over rows.
#include "sim/backend/check_shapes.hpp"
#include "sim/backend/cpu/backend.hpp"
#include "sim/backend/cpu/product.hpp"
#include "sim/backend/cpu/store.hpp"
#include "sim/backend/cpu/window.hpp"

namespace halfscope::sim::backend::cpu {
namespace {

constexpr std::int64_t kTileRows = 64, kTileColumns = 128;  // tile of a product

}  // namespace

void CpuBackend::dense_forward(const Tensor& x, const Tensor& w, const Tensor& b, Tensor& y) {
  const DenseExtents e = require_dense(x.shape, w.shape, y.shape);
  const float *in = data(x), *weights = data(w), *bias = bias_of(b, e.k);
  float* out = data(y);
  const Sums sums = sums_of(x, w, y);
  if (!sums.plain()) {
    const std::vector<float> turned = transposed(weights, e.k, e.c);
    std::fill_n(out, y.size(), 0.0f);
    accumulate(sums, {e.n, e.k, e.c}, {in, e.c, 1}, {turned.data(), e.k}, {out, e.k});
  }
  parallel_tiles(e.n, e.k, kTileRows, kTileColumns, [&](const Tile& t) {
    const MatrixAt<float> c = {out + t.row * e.k + t.column, e.k};
    if (sums.plain()) {
      product_kernels().right_transposed({t.rows, t.columns, e.c}, {in + t.row * e.c, e.c},
                                         {weights + t.column * e.c, e.c}, c);
    }
    finish(c, t.rows, t.columns, bias == nullptr ? nullptr : bias + t.column, y.dtype);
  });
}

void CpuBackend::dense_data_gradient(const Tensor& dy, const Tensor& w, Tensor& dx) {
  const DenseExtents e = require_dense(dx.shape, w.shape, dy.shape);
  const float *in = data(dy), *weights = data(w);
  float* out = data(dx);
  const Sums sums = sums_of(dy, w, dx);
  if (!sums.plain()) {
    std::fill_n(out, dx.size(), 0.0f);
    accumulate(sums, {e.n, e.c, e.k}, {in, e.k, 1}, {weights, e.c}, {out, e.c});
  }
  parallel_tiles(e.n, e.c, kTileRows, kTileColumns, [&](const Tile& t) {
    const MatrixAt<float> c = {out + t.row * e.c + t.column, e.c};
    if (sums.plain()) {
      product_kernels().plain({t.rows, t.columns, e.k}, {in + t.row * e.k, e.k},
                              {weights + t.column, e.c}, c);
    }
    finish(c, t.rows, t.columns, nullptr, dx.dtype);
  });
}

void CpuBackend::dense_weight_gradient(const Tensor& x, const Tensor& dy, Tensor& dw, bool add) {
  const DenseExtents e = require_dense(x.shape, dw.shape, dy.shape);
  const float *in = data(x), *gradients = data(dy);
  std::vector<float> sum(static_cast<std::size_t>(e.k * e.c));
  if (const Sums sums = sums_of(x, dy, dw); !sums.plain()) {
    accumulate(sums, {e.k, e.c, e.n}, {gradients, 1, e.k}, {in, e.c}, {sum.data(), e.c});
  } else {
    parallel_tiles(e.k, e.c, kTileRows, kTileColumns, [&](const Tile& t) {
      product_kernels().add_left_transposed({t.rows, t.columns, e.n}, {gradients + t.row, e.k},
                                            {in + t.column, e.c},
                                            {sum.data() + t.row * e.c + t.column, e.c});
    });
  }
  store_gradient(sum, add, dw);
}

void CpuBackend::bias_gradient(const Tensor& dy, Tensor& db, bool add) {
  const std::int64_t k = require_bias_gradient(dy.shape, db.shape);
  const float* in = data(dy);
  std::vector<float> sum(static_cast<std::size_t>(k));
  constexpr std::int64_t kSummed = 256;  // rows per partial sum; also limits rounding errors
  sum_of_parts(dy.size() / k, kSummed, sum, [&](std::int64_t first, std::int64_t count, float* to) {
    float* part = scratch(2, k);
    std::fill_n(part, k, 0.0f);
    for (const float* row = in + first * k; count > 0; --count, row += k) {
      for (std::int64_t j = 0; j < k; ++j) part[j] += row[j];
    }
    for (std::int64_t j = 0; j < k; ++j) to[j] += part[j];
  });
  store_gradient(sum, add, db);
}

}  // namespace halfscope::sim::backend::cpu
