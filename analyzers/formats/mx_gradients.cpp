// SPDX-License-Identifier: Apache-2.0
#include "analyzers/formats/mx_gradients.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "analyzers/formats/amax_history.hpp"

namespace halfscope::analyzers::formats {

using underflow::TensorFindings;

namespace {

std::optional<double> noise_in(const TensorFindings& tensor, std::string_view element) {
  for (const underflow::BlockFit& fit : tensor.block_fits) {
    if (fit.element == element && fit.noise) return fit.noise->db;
  }
  return std::nullopt;
}

/// Of an even number the mean of the middle two.
double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1 || values[middle - 1] == values[middle]) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

std::optional<MxGradients> mx_gradients(const underflow::Analysis& analysis) {
  MxGradients found;
  std::vector<double> e4m3_db, e5m2_db;
  for (const underflow::LogFindings& log : analysis.logs) {
    const log::Role gradients = cast_gradients(log);
    for (const TensorFindings& tensor : log.tensors) {
      if (tensor.role != gradients) continue;
      const auto e4m3 = noise_in(tensor, "e4m3"), e5m2 = noise_in(tensor, "e5m2");
      if (!e4m3 || !e5m2) continue;
      e4m3_db.push_back(*e4m3);
      e5m2_db.push_back(*e5m2);
      if (*e4m3 > *e5m2) ++found.e4m3_better;
      if (*e5m2 <= *e4m3) continue;
      ++found.e5m2_better;
      if (const double gained = *e5m2 - *e4m3; gained > found.gained_db) {
        found.gained_db = gained;
        found.most_for_e5m2 = tensor.name;
      }
    }
  }
  found.tensors = e4m3_db.size();
  if (found.tensors == 0) return std::nullopt;
  found.e4m3_db = median(std::move(e4m3_db));
  found.e5m2_db = median(std::move(e5m2_db));
  return found;
}

}  // namespace halfscope::analyzers::formats
