// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/precision.hpp"

#include <algorithm>

namespace halfscope::sim::backend {

std::optional<tensor_core::Unit> Accumulation::unit_for(Dtype tensors) const {
  if (architecture == nullptr) return std::nullopt;
  const Format f = format_of(tensors);
  return unit_of(*architecture, f, f, tensor_core::Accumulator::binary32);
}

std::string text_of(const Accumulation& accumulation) {
  if (accumulation.architecture != nullptr) {
    return "tensor-core:" + std::string(accumulation.architecture->name);
  }
  return accumulation.narrow ? "fp16" : "fp32";
}

std::vector<Accumulation> accumulations() {
  std::vector<Accumulation> all = {Accumulation::fp32, Accumulation::fp16};
  for (const tensor_core::Architecture& row : tensor_core::kArchitectures) {
    all.push_back({.architecture = &row});
  }
  return all;
}

std::optional<Accumulation> find_accumulation(std::string_view text) {
  const std::vector<Accumulation> all = accumulations();
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const Accumulation& one) { return text_of(one) == text; });
  if (found == all.end()) return std::nullopt;
  return *found;
}

}  // namespace halfscope::sim::backend
