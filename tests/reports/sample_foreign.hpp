// SPDX-License-Identifier: Apache-2.0
// Logs as other tools leave them, put together by hand: values known between bounds.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/sample.hpp"

namespace sample {

namespace hs = halfscope;
namespace hsa = halfscope::analyzers;

/// Values in [low, high); low 0: with zero.
inline hs::Span bucket(double low, double high, std::uint64_t count) {
  const std::optional<hs::Magnitude> first =
      low > 0 ? std::optional(hs::magnitude_of(low)) : std::nullopt;
  return {first, hs::magnitude_of(std::nextafter(high, 0.0)), false, count};
}

/// TensorBoard's buckets: limits 1e-12 * 1.1^i (tensorflow/core/lib/histogram/histogram.cc).
inline hs::BoundedTable log_buckets(const std::vector<float>& values) {
  std::map<double, std::uint64_t> counts;  // by lower edge
  std::vector<double> edges = {0};
  for (double v = 1e-12; v < 1e20; v *= 1.1) edges.push_back(v);
  for (const float x : values) {
    const double magnitude = std::fabs(static_cast<double>(x));
    ++counts[*std::prev(std::upper_bound(edges.begin(), edges.end(), magnitude))];
  }
  hs::BoundedTable out;
  for (const auto& [low, count] : counts) {
    out.add(bucket(low, *std::upper_bound(edges.begin(), edges.end(), low), count));
  }
  return out;
}

/// As many equal buckets between the smallest and the largest value, of either sign.
inline hs::BoundedTable equal_buckets(const std::vector<float>& values, int buckets) {
  double largest = 0;
  for (const float x : values) largest = std::fmax(largest, std::fabs(static_cast<double>(x)));
  const double width = 2 * largest / buckets;
  std::map<int, std::uint64_t> counts;
  for (const float x : values) {
    const double magnitude = std::fabs(static_cast<double>(x));
    ++counts[std::min(buckets / 2 - 1, static_cast<int>(magnitude / width))];
  }
  hs::BoundedTable out;
  for (const auto& [i, count] : counts) out.add(bucket(i * width, (i + 1) * width, count));
  return out;
}

inline hsa::underflow::Counts counts_of(const hs::BoundedTable& table,
                                        const hs::Boundaries& limits) {
  return {table.total(),
          table.zero(),
          table.nan(),
          table.inf(),
          table.finite_nonzero(),
          hs::classify(table, limits),
          table.nonfinite_known()};
}

/// Binades down to 2^-45, where the bucket with zero is long below all else.
inline hsa::underflow::BinadeCounts binades_of(const hs::BoundedTable& table) {
  hsa::underflow::BinadeCounts out;
  for (int e = -45; e < 70; ++e) {
    const hs::Interval count = without(table.at_or_above({e, 0}), table.at_or_above({e + 1, 0}));
    if (count.high != 0) out.push_back({e, count});
  }
  return out;
}

/// Adds a step to a tensor that carries no scale.
inline void add_step(hsa::underflow::TensorFindings& tensor, std::int64_t step,
                     const hs::BoundedTable& table) {
  hsa::underflow::StepFindings found;
  found.step = step;
  found.counts = counts_of(table, hsa::underflow::Target().boundaries(1, 1));
  found.binades = binades_of(table);
  if (tensor.tables.empty()) tensor.tables.push_back({1.0, {}});
  tensor.tables[0].table.merge(table);
  const hs::BoundedTable& all = tensor.tables[0].table;
  found.largest = table.largest();
  if (found.largest) found.max_abs = to_double(*found.largest);
  const auto least = table.largest_at_least();
  if (least) found.max_abs_at_least = to_double(*least);
  tensor.per_step.push_back(found);
  tensor.counts = counts_of(all, hsa::underflow::Target().boundaries(1, 1));
  tensor.binades = binades_of(all);
  tensor.max_abs = to_double(*all.largest());
  if (all.largest_at_least()) tensor.max_abs_at_least = to_double(*all.largest_at_least());
}

inline hsa::underflow::TensorFindings foreign_tensor(const std::string& log,
                                                     const std::string& name) {
  hsa::underflow::TensorFindings out;
  out.log = log;
  out.name = name;
  out.role = hs::log::Role::weight_grad;
  out.role_source = hsa::frames::RoleSource::name;
  out.loss_scaled = true;
  return out;
}

inline std::vector<float> gradients_with_zeros(int layer, std::int64_t step) {
  const auto seed = static_cast<std::uint32_t>(100 * layer + step);
  std::vector<float> out =
      log_normal(3000, -14 - 3.0 * layer - 0.002 * static_cast<double>(step), 4, seed);
  for (std::size_t i = 0; i < out.size(); i += 5) out[i] = 0;  // a dead ReLU
  return out;
}

/// What TensorBoard's own buckets tell: a bound for all but what is nearest to zero.
inline hsa::Study tensorboard_study() {
  using hsa::frames::Gap;
  hsa::Study out;
  out.analysis.logs.resize(1);
  out.analysis.logs[0].name = "runs/mine";
  out.analysis.logs[0].kinds = {
      {"TensorBoard histograms",
       {Gap::zeros, Gap::dtype, Gap::loss_scale, Gap::updates, Gap::every_step}}};
  out.analysis.logs[0].kinds.front().tool = hsa::frames::Tool::tensorboard;
  for (int layer = 0; layer < 4; ++layer) {
    auto tensor = foreign_tensor("runs/mine", "gradients/layer" + std::to_string(layer));
    for (const std::int64_t step : {0, 100, 200, 300, 400}) {
      add_step(tensor, step, log_buckets(gradients_with_zeros(layer, step)));
    }
    out.analysis.logs[0].tensors.push_back(tensor);
  }
  out.advice = hsa::recommend::recommend({out.analysis, {}, {}});
  return out;
}

/// What 30 equal buckets tell: nothing of underflow.
inline hsa::Study linear_study() {
  using hsa::frames::Gap;
  hsa::Study out;
  out.analysis.logs.resize(1);
  out.analysis.logs[0].name = "runs/keras";
  out.analysis.logs[0].kinds = {
      {"TensorBoard histograms", {Gap::zeros, Gap::underflow, Gap::nonfinite, Gap::dtype}}};
  out.analysis.logs[0].kinds.front().tool = hsa::frames::Tool::tensorboard;
  for (int layer = 0; layer < 2; ++layer) {
    auto tensor = foreign_tensor("runs/keras", "dense_" + std::to_string(layer) + "/kernel:0");
    tensor.hidden_by_buckets = true;
    tensor.underflow_identifiable = false;
    for (const std::int64_t step : {0, 10, 20}) {
      hs::BoundedTable table = equal_buckets(gradients_with_zeros(layer, step), 30);
      table.set_nonfinite_unknown();
      add_step(tensor, step, table);
    }
    out.analysis.logs[0].tensors.push_back(tensor);
  }
  out.advice = hsa::recommend::recommend({out.analysis, {}, {}});
  return out;
}

}  // namespace sample
