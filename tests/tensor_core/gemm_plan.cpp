// SPDX-License-Identifier: Apache-2.0
#include "tensor_core/gemm_plan.hpp"

#include <algorithm>
#include <cmath>

#include "halfscope/number/bits.hpp"

namespace probe {
namespace {

using halfscope::kBinary16;
using halfscope::kBinary32;
using halfscope::tensor_core::Unit;

constexpr int kNvjet = 66;

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

struct Operands {
  const std::vector<std::uint16_t>&a, &b;
};

/// Products [first, last) by groups, onto `sum`.
std::uint32_t groups(const GemmPlan& plan, const Unit& unit, const Operands& in, int first,
                     int last, std::uint32_t sum) {
  for (int k = first; k < last; k += plan.group) {
    sum = halfscope::tensor_core::chain(unit, Accumulator::binary32, in.a.data() + k,
                                        in.b.data() + k, std::min(plan.group, last - k), sum);
  }
  return sum;
}

float sum_of_slice(const GemmPlan& plan, const Unit& unit, const Operands& in, int first,
                   int last) {
  if (plan.fused) {
    float sum = 0;
    for (int k = first; k < last; ++k) {
      sum = std::fma(from_half(in.a[static_cast<std::size_t>(k)]),
                     from_half(in.b[static_cast<std::size_t>(k)]), sum);
    }
    return sum;
  }
  const int rest = plan.block == 0 ? 0 : (last - first) % plan.block;
  const std::uint32_t residue = groups(plan, unit, in, first, first + rest, 0);
  return as_float(groups(plan, unit, in, first + rest, last, residue));
}

/// STAGES_ID: the width of a slab of k, and the products of an instruction.
std::optional<GemmPlan> cutlass(const GemmConfig& config) {
  GemmPlan plan;
  if (config.stages == 0) {
    plan.block = 32;
    plan.group = 8;
  } else if (config.stages == 25) {
    plan.block = 32;
  } else if (config.stages <= 24) {
    plan.block = 16 << ((config.stages - 1) / 6);
  } else {
    return std::nullopt;
  }
  return plan;
}

std::optional<GemmPlan> slices_of(GemmPlan plan, const GemmConfig& config, int k, int grain) {
  plan.slices = std::max(1, config.slices);
  if (plan.slices == 1) return plan;
  plan.slice = divided_up(divided_up(k, grain), plan.slices) * grain;
  if (config.algorithm == kNvjet || config.reduction == 2) {
    plan.merge = Merge::binary32;
  } else if (config.reduction == 4) {
    plan.merge = Merge::rounded_partials;
  } else if (config.reduction <= 1) {
    plan.merge = Merge::running_sum;
  } else {
    return std::nullopt;
  }
  return plan;
}

std::optional<GemmPlan> nvjet(const GemmConfig& config, int k) {
  const int rest = k % 64;
  // A fault of cuBLAS 13.1: slices that the whole slabs fill evenly lose the rest of k.
  const bool lost =
      config.slices > 1 && rest != 0 && k / 64 % config.slices == 0 && config.slices > rest;
  std::optional<GemmPlan> plan = slices_of({}, config, lost ? k - rest : k, 64);
  if (lost) plan->dropped = rest;
  return plan;
}

}  // namespace

std::optional<GemmPlan> plan_of(const GemmConfig& config, int k) {
  std::optional<GemmPlan> plan;
  if (config.algorithm == kNvjet) {
    plan = nvjet(config, k);
  } else if (config.algorithm == 12 || config.algorithm == 21 || config.algorithm == 23 ||
             config.algorithm == 24) {
    plan = cutlass(config);
    if (plan) plan = slices_of(*plan, config, k, k % 64 == 0 ? 64 : 8);
  }
  if (plan) plan->name = "by its configuration";
  return plan;
}

std::vector<GemmPlan> other_plans(const GemmConfig& config, int k) {
  std::vector<GemmPlan> out = {{.name = "ascending"},
                               {.name = "ascending by 8", .group = 8},
                               {.name = "rest of 32 first", .block = 32},
                               {.name = "rest of 64 first", .block = 64},
                               {.name = "rest of 128 first", .block = 128},
                               {.name = "fused", .fused = true}};
  const int slices = config.slices;
  if (slices > 1) {
    for (const int grain : {8, 16, 32, 64, 128}) {
      out.push_back({.name = "slices of whole " + std::to_string(grain),
                     .slice = divided_up(divided_up(k, grain), slices) * grain,
                     .slices = slices});
    }
  }
  return out;
}

std::uint32_t predict(const GemmPlan& plan, const Unit& unit, Accumulator out,
                      const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b) {
  auto in_format_of_d = [out](float x) {
    return out == Accumulator::binary16 ? from_half(to_half(x)) : x;
  };
  const int k = static_cast<int>(a.size()) - plan.dropped;
  const int slice = plan.slice == 0 ? k : plan.slice;
  float sum = 0;
  for (int first = 0; first < k; first += slice) {
    float part = sum_of_slice(plan, unit, {a, b}, first, std::min(first + slice, k));
    if (plan.merge == Merge::rounded_partials) part = in_format_of_d(part);
    sum = first == 0 ? part : sum + part;
    if (plan.merge == Merge::running_sum) sum = in_format_of_d(sum);
  }
  return out == Accumulator::binary16 ? to_half(sum) : as_bits(sum);
}

}  // namespace probe
