// SPDX-License-Identifier: Apache-2.0
#include "tensor_core/gemm_plan.hpp"

#include <algorithm>
#include <cmath>

#include "halfscope/number/bits.hpp"

namespace probe {
namespace {

using halfscope::kBinary16;
using halfscope::kBinary32;
using halfscope::tensor_core::Plan;
using halfscope::tensor_core::Unit;

int divided_up(int a, int b) { return (a + b - 1) / b; }

float as_float(std::uint32_t bits) { return halfscope::detail::bit_cast<float>(bits); }
std::uint32_t as_bits(float x) { return halfscope::detail::bit_cast<std::uint32_t>(x); }

std::uint32_t to_half(float x) {
  return static_cast<std::uint32_t>(
      halfscope::from_float(kBinary16, x, {.nan = halfscope::NanPolicy::cuda}).bits);
}

float from_half(std::uint32_t bits) {
  return as_float(static_cast<std::uint32_t>(halfscope::convert(kBinary32, kBinary16, bits).bits));
}

struct OperandPair {
  const std::vector<std::uint16_t>&a, &b;
};

/// Products [first, last) by groups, onto `sum`.
std::uint32_t groups(const Plan& plan, const Unit& unit, const OperandPair& in, int first, int last,
                     std::uint32_t sum) {
  const int group = plan.group == 0 ? last - first : plan.group;
  for (int k = first; k < last; k += group) {
    sum = halfscope::tensor_core::chain(unit, Accumulator::binary32, in.a.data() + k,
                                        in.b.data() + k, std::min(group, last - k), sum);
  }
  return sum;
}

float sum_of_slice(const GemmPlan& plan, const Unit& unit, const OperandPair& in, int first,
                   int last) {
  if (plan.fused) {
    float sum = 0;
    for (int k = first; k < last; ++k) {
      sum = std::fma(from_half(in.a[static_cast<std::size_t>(k)]),
                     from_half(in.b[static_cast<std::size_t>(k)]), sum);
    }
    return sum;
  }
  const int rest = plan.plan.residue == 0 ? 0 : (last - first) % plan.plan.residue;
  const std::uint32_t residue = groups(plan.plan, unit, in, first, first + rest, 0);
  return as_float(groups(plan.plan, unit, in, first + rest, last, residue));
}

}  // namespace

std::optional<GemmPlan> plan_of(const GemmConfig& config, int k) {
  const auto plan =
      halfscope::tensor_core::plan_of({.algorithm = config.algorithm,
                                       .stages = static_cast<int>(config.stages),
                                       .slices = config.slices,
                                       .reduction = static_cast<int>(config.reduction)},
                                      k);
  if (!plan) return std::nullopt;
  return GemmPlan{"by its configuration", *plan};
}

std::vector<GemmPlan> other_plans(const GemmConfig& config, int k) {
  std::vector<GemmPlan> out = {{.name = "ascending"},
                               {.name = "ascending by 8", .plan = {.group = 8}},
                               {.name = "fused", .fused = true}};
  for (const int block : {32, 64, 128}) {
    out.push_back({"rest of " + std::to_string(block) + " first", {.group = 16, .residue = block}});
  }
  if (config.slices > 1) {
    for (const int grain : {8, 16, 32, 64, 128}) {
      const int slice = divided_up(divided_up(k, grain), config.slices) * grain;
      out.push_back({"slices of whole " + std::to_string(grain), {.group = 16, .slice = slice}});
    }
  }
  return out;
}

std::uint32_t predict(const GemmPlan& plan, const Unit& unit, Accumulator out,
                      const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b) {
  auto in_format_of_d = [out](float x) {
    return out == Accumulator::binary16 ? from_half(to_half(x)) : x;
  };
  const int k = static_cast<int>(a.size()) - static_cast<int>(plan.plan.dropped);
  const int slice = plan.plan.slice == 0 ? k : static_cast<int>(plan.plan.slice);
  float sum = 0;
  for (int first = 0; first < k; first += slice) {
    float part = sum_of_slice(plan, unit, {a, b}, first, std::min(first + slice, k));
    if (plan.plan.merge == Merge::rounded_partials) part = in_format_of_d(part);
    sum = first == 0 ? part : sum + part;
    if (plan.plan.merge == Merge::running_sum) sum = in_format_of_d(sum);
  }
  return out == Accumulator::binary16 ? to_half(sum) : as_bits(sum);
}

}  // namespace probe
