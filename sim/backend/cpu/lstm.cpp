// SPDX-License-Identifier: Apache-2.0
// The LSTM cell (Hochreiter, Schmidhuber 1997, with the forget gate of Gers, Schmidhuber, Cummins
// 2000). Gates are stored before their activation; the backward pass computes the activation again.
#include <vector>

#include "sim/backend/check_shapes.hpp"
#include "sim/backend/cpu/backend.hpp"
#include "sim/backend/cpu/transcendental.hpp"

namespace halfscope::sim::backend::cpu {
namespace {

constexpr std::int64_t kLstmRows = 4;

/// The activated gates of one row, and the hyperbolic tangents of its cells.
class Row {
 public:
  explicit Row(std::int64_t width) : values_(static_cast<std::size_t>(5 * width)), width_(width) {}

  void activate(const float* gates) {
    logistic_functions(gates, at(0), 2 * width_);
    hyperbolic_tangents(gates + 2 * width_, at(2), width_);
    logistic_functions(gates + 3 * width_, at(3), width_);
  }
  void show(const float* cells) { hyperbolic_tangents(cells, at(4), width_); }

  const float* input() { return at(0); }
  const float* forget() { return at(1); }
  const float* candidate() { return at(2); }
  const float* output() { return at(3); }
  const float* shown() { return at(4); }

 private:
  float* at(std::int64_t part) { return values_.data() + part * width_; }
  std::vector<float> values_;
  std::int64_t width_;
};

}  // namespace

void CpuBackend::lstm_forward(const Tensor& gates, const Tensor& c_before, Tensor& c, Tensor& h) {
  const std::int64_t width = require_lstm(gates, h);
  const float *in = data(gates), *before = data(c_before);
  float *cell = data(c), *out = data(h);
  parallel_parts(h.size() / width, kLstmRows, [&](std::int64_t first, std::int64_t count) {
    Row row(width);
    for (std::int64_t n = first; n < first + count; ++n) {
      const float* c_row = before + n * width;
      float *to = cell + n * width, *h_row = out + n * width;
      row.activate(in + 4 * n * width);
      for (std::int64_t j = 0; j < width; ++j) {
        to[j] = row.forget()[j] * c_row[j] + row.input()[j] * row.candidate()[j];
      }
      row.show(to);
      for (std::int64_t j = 0; j < width; ++j) h_row[j] = row.output()[j] * row.shown()[j];
    }
    round_values(c.dtype, cell + first * width, count * width);
    round_values(h.dtype, out + first * width, count * width);
  });
}

void CpuBackend::lstm_backward(const Tensor& gates, const Tensor& c_before, const Tensor& c,
                               const Tensor& dh, Tensor& dc, Tensor& dgates) {
  const std::int64_t width = require_lstm(gates, dh);
  const float *in = data(gates), *before = data(c_before), *cell = data(c), *up = data(dh);
  float *carried = data(dc), *out = data(dgates);
  parallel_parts(dh.size() / width, kLstmRows, [&](std::int64_t first, std::int64_t count) {
    Row row(width);
    for (std::int64_t n = first; n < first + count; ++n) {
      row.activate(in + 4 * n * width);
      row.show(cell + n * width);
      const float *i = row.input(), *f = row.forget(), *g = row.candidate(), *o = row.output(),
                  *t = row.shown(), *c_row = before + n * width, *dh_row = up + n * width;
      float *dc_row = carried + n * width, *to = out + 4 * n * width;
      for (std::int64_t j = 0; j < width; ++j) {
        const float d = dc_row[j] + dh_row[j] * o[j] * (1.0F - t[j] * t[j]);
        to[j] = d * g[j] * (i[j] * (1.0F - i[j]));
        to[width + j] = d * c_row[j] * (f[j] * (1.0F - f[j]));
        to[2 * width + j] = d * i[j] * (1.0F - g[j] * g[j]);
        to[3 * width + j] = dh_row[j] * t[j] * (o[j] * (1.0F - o[j]));
        dc_row[j] = d * f[j];
      }
    }
    round_values(dc.dtype, carried + first * width, count * width);
    round_values(dgates.dtype, out + 4 * first * width, 4 * count * width);
  });
}

}  // namespace halfscope::sim::backend::cpu
