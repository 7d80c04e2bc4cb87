// SPDX-License-Identifier: Apache-2.0
#include "halfscope/tensor_core/plan.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace halfscope::tensor_core {
namespace {

void require_at_least(std::int64_t least, const char* name, std::int64_t value) {
  if (value >= least) return;
  throw std::invalid_argument(std::string("halfscope::tensor_core: ") + name + " is " +
                              std::to_string(value) + ", expected " + std::to_string(least) +
                              " or more");
}

void check(const Plan& plan, int length, std::int64_t k) {
  require_at_least(1, "Unit::length", length);
  require_at_least(0, "Plan::group", plan.group);
  require_at_least(0, "Plan::residue", plan.residue);
  require_at_least(0, "Plan::slice", plan.slice);
  require_at_least(0, "Plan::dropped", plan.dropped);
  if (plan.dropped <= k) return;
  throw std::invalid_argument("halfscope::tensor_core: Plan::dropped is " +
                              std::to_string(plan.dropped) + ", more than the " +
                              std::to_string(k) + " products");
}

/// Adds the products [first, last) in instructions of `group` products.
void add_groups(std::vector<StepRange>& out, std::int64_t group, int length, std::int64_t first,
                std::int64_t last) {
  for (; first < last; first += group) {
    const std::int64_t end = std::min(first + group, last);
    for (std::int64_t k = first; k < end; k += length) {
      out.push_back({k, static_cast<int>(std::min<std::int64_t>(length, end - k))});
    }
  }
}

// The functions below describe cublasLt, after facebookexperimental/triton, bitequiv/cublas_match.

constexpr int kNvjet = 66;

std::int64_t divided_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// CUTLASS for sm_80. STAGES_ID sets the width of a slab of k and the products per instruction.
std::optional<Plan> cutlass(int stages) {
  if (stages == 0) return Plan{.group = 8, .residue = 32};
  if (stages == 25) return Plan{.group = 16, .residue = 32};
  if (stages < 0 || stages > 25) return std::nullopt;
  return Plan{.group = 16, .residue = 16 << ((stages - 1) / 6)};
}

std::optional<Merge> merge_of(const CublasLtConfig& config) {
  if (config.algorithm == kNvjet || config.reduction == 2) return Merge::binary32;
  if (config.reduction == 4) return Merge::rounded_partials;
  if (config.reduction <= 1) return Merge::running_sum;
  return std::nullopt;
}

std::optional<Plan> sliced(Plan plan, const CublasLtConfig& config, std::int64_t k,
                           std::int64_t grain) {
  if (config.slices <= 1) return plan;
  const std::optional<Merge> merge = merge_of(config);
  if (!merge) return std::nullopt;
  plan.slice = divided_up(divided_up(k, grain), config.slices) * grain;
  plan.merge = *merge;
  return plan;
}

std::optional<Plan> nvjet(const CublasLtConfig& config, std::int64_t k) {
  const std::int64_t rest = k % 64;
  // A bug of cuBLAS 13.1: if the whole slabs fill the slices evenly, the remainder of k is lost.
  const bool lost =
      config.slices > 1 && rest != 0 && k / 64 % config.slices == 0 && config.slices > rest;
  std::optional<Plan> plan = sliced({.group = 16}, config, lost ? k - rest : k, 64);
  if (lost) plan->dropped = rest;
  return plan;
}

}  // namespace

std::vector<std::vector<StepRange>> steps_of(const Plan& plan, int length, std::int64_t k) {
  check(plan, length, k);
  const std::int64_t end = k - plan.dropped;
  const std::int64_t slice = plan.slice == 0 ? std::max<std::int64_t>(end, 1) : plan.slice;
  std::vector<std::vector<StepRange>> out;
  for (std::int64_t first = 0; first < end; first += slice) {
    const std::int64_t last = std::min(first + slice, end);
    const std::int64_t rest = plan.residue == 0 ? 0 : (last - first) % plan.residue;
    const std::int64_t group = plan.group == 0 ? last - first : plan.group;
    std::vector<StepRange>& steps = out.emplace_back();
    add_groups(steps, group, length, first, first + rest);
    add_groups(steps, group, length, first + rest, last);
  }
  return out;
}

std::optional<Plan> plan_of(const CublasLtConfig& config, std::int64_t k) {
  switch (config.algorithm) {
    case kNvjet: return nvjet(config, k);
    case 12:
    case 21:
    case 23:
    case 24: break;
    default: return std::nullopt;
  }
  const std::optional<Plan> plan = cutlass(config.stages);
  if (!plan) return std::nullopt;
  return sliced(*plan, config, k, k % 64 == 0 ? 64 : 8);
}

}  // namespace halfscope::tensor_core
