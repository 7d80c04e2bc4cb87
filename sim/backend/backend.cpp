// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/backend.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace halfscope::sim::backend {

nlohmann::json Backend::details() const { return nullptr; }

Later<std::vector<GradientFacts>> Backend::facts_later(std::span<const Tensor> gradients) {
  std::vector<GradientFacts> found;
  for (const Tensor& gradient : gradients) found.push_back(facts(std::span(&gradient, 1)));
  return [found = std::move(found)] { return found; };
}

Later<std::vector<TensorStatistics>> Backend::statistics_later(std::span<const Tensor> tensors) {
  std::vector<TensorStatistics> found;
  for (const Tensor& tensor : tensors) found.push_back({count(tensor), moments(tensor)});
  return [found = std::move(found)] { return found; };
}

}  // namespace halfscope::sim::backend
