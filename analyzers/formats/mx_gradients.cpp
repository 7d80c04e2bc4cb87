// SPDX-License-Identifier: Apache-2.0
#include "analyzers/formats/mx_gradients.hpp"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace halfscope::analyzers::formats {

using underflow::TensorFindings;

namespace {

std::optional<double> noise_in(const TensorFindings& tensor, std::string_view element) {
  for (const underflow::BlockFit& fit : tensor.whole->block_fits) {
    if (fit.element == element && fit.noise) return fit.noise->db;
  }
  return std::nullopt;
}

/// Returns the median; for an even number, the mean of the middle two.
double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1 || values[middle - 1] == values[middle]) return values[middle];
  return (values[middle - 1] + values[middle]) / 2;
}

/// Results collected over gradients.
struct Sums {
  MxGradients found;
  std::vector<double> e4m3_db, e5m2_db;

  void add(const TensorFindings& gradient) {
    const auto e4m3 = noise_in(gradient, "e4m3"), e5m2 = noise_in(gradient, "e5m2");
    if (!e4m3 || !e5m2) return;
    e4m3_db.push_back(*e4m3);
    e5m2_db.push_back(*e5m2);
    if (*e4m3 > *e5m2) ++found.e4m3_better;
    if (*e5m2 <= *e4m3) return;
    ++found.e5m2_better;
    const double gained = *e5m2 - *e4m3;
    if (gained <= found.gained_db) return;
    found.gained_db = gained;
    found.most_for_e5m2 = gradient.name;
  }

  std::optional<MxGradients> finish() && {
    if (e4m3_db.empty()) return std::nullopt;
    found.tensors = e4m3_db.size();
    found.e4m3_db = median(std::move(e4m3_db));
    found.e5m2_db = median(std::move(e5m2_db));
    return found;
  }
};

}  // namespace

std::optional<MxGradients> mx_gradients(const underflow::Analysis& analysis) {
  for (const log::Role role : {log::Role::activation_grad, log::Role::weight_grad}) {
    Sums sums;
    for (const TensorFindings& tensor : analysis.tensors()) {
      if (tensor.role == role) sums.add(tensor);
    }
    if (auto found = std::move(sums).finish()) return found;
  }
  return std::nullopt;
}

}  // namespace halfscope::analyzers::formats
