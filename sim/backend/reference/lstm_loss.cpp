// SPDX-License-Identifier: Apache-2.0
// The LSTM cell (Hochreiter, Schmidhuber 1997, with the forget gate of Gers, Schmidhuber, Cummins
// 2000), embeddings and losses.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "sim/backend/reference/backend.hpp"
#include "sim/backend/reference/sums.hpp"

namespace halfscope::sim::backend::reference {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// The activated gates of unit j of one row. Its pre-activations are `width` apart: i, f, g, o.
struct Gates {
  Gates(std::span<const double> row, std::size_t j, std::size_t width)
      : input(sigmoid(row[j])),
        forget(sigmoid(row[width + j])),
        candidate(std::tanh(row[2 * width + j])),
        output(sigmoid(row[3 * width + j])) {}
  double input, forget, candidate, output;
};

}  // namespace

void ReferenceBackend::lstm_forward(const Tensor& gates, const Tensor& c_before, Tensor& c,
                                    Tensor& h) {
  const std::span<const double> in = values(gates), before = values(c_before);
  const std::span<double> cells = values(c), out = values(h);
  const std::size_t width = static_cast<std::size_t>(h.shape.back());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Gates g(in.subspan(i / width * 4 * width, 4 * width), i % width, width);
    cells[i] = g.forget * before[i] + g.input * g.candidate;
    out[i] = g.output * std::tanh(cells[i]);
  }
}

void ReferenceBackend::lstm_backward(const Tensor& gates, const Tensor& c_before, const Tensor& c,
                                     const Tensor& dh, Tensor& dc, Tensor& dgates) {
  const std::span<const double> in = values(gates), before = values(c_before), up = values(dh),
                                cells = values(c);
  const std::span<double> carried = values(dc), out = values(dgates);
  const std::size_t width = static_cast<std::size_t>(dh.shape.back());
  for (std::size_t i = 0; i < up.size(); ++i) {
    const std::size_t row = i / width * 4 * width, j = i % width;
    const Gates g(in.subspan(row, 4 * width), j, width);
    const double t = std::tanh(cells[i]);
    const double cell = carried[i] + up[i] * g.output * (1 - t * t);
    const std::span<double> to = out.subspan(row, 4 * width);
    to[j] = cell * g.candidate * (g.input * (1 - g.input));
    to[width + j] = cell * before[i] * (g.forget * (1 - g.forget));
    to[2 * width + j] = cell * g.input * (1 - g.candidate * g.candidate);
    to[3 * width + j] = up[i] * t * (g.output * (1 - g.output));
    carried[i] = cell * g.forget;
  }
}

void ReferenceBackend::embed_forward(std::span<const std::int32_t> ids, const Tensor& table,
                                     Tensor& y) {
  const std::size_t width = static_cast<std::size_t>(table.shape[1]);
  for (std::size_t m = 0; m < ids.size(); ++m) {
    const auto row = values(table).subspan(static_cast<std::size_t>(ids[m]) * width, width);
    std::ranges::copy(row, values(y).subspan(m * width).begin());
  }
}

void ReferenceBackend::embed_backward(std::span<const std::int32_t> ids, const Tensor& dy,
                                      Tensor& dtable, bool add) {
  const std::size_t width = static_cast<std::size_t>(dtable.shape[1]);
  const std::span<const double> up = values(dy);
  const std::span<double> out = values(dtable);
  std::vector<Sum> sums;
  for (const double x : out) sums.emplace_back(add ? x : 0);
  for (std::size_t i = 0; i < up.size(); ++i) {
    sums[static_cast<std::size_t>(ids[i / width]) * width + i % width].add(up[i]);
  }
  std::ranges::transform(sums, out.begin(), &Sum::value);
}

double ReferenceBackend::softmax_cross_entropy(const Tensor& logits,
                                               std::span<const std::int32_t> labels, double factor,
                                               Tensor& dlogits) {
  const std::size_t classes = static_cast<std::size_t>(logits.shape.back());
  Sum loss;
  for (std::size_t m = 0; m < labels.size(); ++m) {
    const std::span<const double> z = values(logits).subspan(m * classes, classes);
    const std::span<double> to = values(dlogits).subspan(m * classes, classes);
    if (labels[m] < 0) {
      std::ranges::fill(to, 0.0);
      continue;
    }
    const auto label = static_cast<std::size_t>(labels[m]);
    const double largest = std::ranges::max(z);
    Sum exponentials;
    for (const double x : z) exponentials.add(std::exp(x - largest));
    const double sum = exponentials.value();
    loss.add(std::log(sum) - (z[label] - largest));
    for (std::size_t k = 0; k < classes; ++k) {
      to[k] = (std::exp(z[k] - largest) / sum - (k == label ? 1 : 0)) * factor;
    }
  }
  return loss.value();
}

double ReferenceBackend::smooth_l1(const Tensor& x, std::span<const float> target,
                                   std::span<const std::uint8_t> mask, double factor, Tensor& dx) {
  const std::span<const double> in = values(x);
  const std::span<double> out = values(dx);
  const std::size_t width = static_cast<std::size_t>(x.shape.back());
  Sum loss;
  for (std::size_t i = 0; i < target.size(); ++i) {
    out[i] = 0;
    if (mask[i / width] == 0) continue;
    const double d = in[i] - static_cast<double>(target[i]);
    loss.add(std::abs(d) < 1 ? d * d / 2 : std::abs(d) - 0.5);
    out[i] = std::clamp(d, -1.0, 1.0) * factor;
  }
  return loss.value();
}

}  // namespace halfscope::sim::backend::reference
