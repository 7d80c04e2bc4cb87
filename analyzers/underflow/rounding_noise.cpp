// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/rounding_noise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "analyzers/underflow/modules.hpp"

namespace halfscope::analyzers::underflow {
namespace {

/// Less of a tensor is the small values that any gradient has, not a slice of it.
constexpr double kLeastShare = 0.02;
/// The noise of a sum is no more than this part of what a sum of independent terms would be.
constexpr double kMostOfSum = 0x1p-6;

using ByPath = std::unordered_map<std::string_view, const TensorFindings*>;

/// What one rounding of a term changes it by, at the most and relative to it.
double unit_roundoff(const TensorFindings& tensor) {
  int precision = kBinary64.precision;
  for (const auto& dtype : {tensor.source_dtype, tensor.computed_dtype}) {
    if (dtype) precision = std::min(precision, format_of(*dtype).precision);
  }
  return std::ldexp(1.0, -precision);
}

/// The rounding error that a sum over a step's terms may have, `sums` of them from all terms alike.
/// n terms x added one after the other have an error of sqrt(n) u sum |x| at the most, but for rare
/// cases (Higham and Mary, SIAM J. Sci. Comput. 41, 2019), and sum |x| is at most n times their
/// root mean square. 16-bit terms are added up in FP32, and bring their own rounding errors along.
std::optional<double> noise_of_sums(const TensorFindings& terms, const StepFindings& step,
                                    std::uint64_t sums) {
  const auto all = static_cast<double>(step.counts.zero.low + step.counts.finite_nonzero.low);
  if (!step.moments || all == 0) return std::nullopt;
  const double root_mean_square = std::sqrt(step.moments->sum_squares / all) / step.scale;
  const double n = all / static_cast<double>(sums);
  const double of_terms = unit_roundoff(terms);
  const double of_sum = std::min(of_terms, std::ldexp(1.0, -kBinary32.precision));
  return root_mean_square * std::sqrt(n) * std::min(of_sum * n + of_terms, kMostOfSum);
}

/// Nonzero values of a step that are surely no larger: all but those that may be. A loss scale that
/// is no power of two puts each value between two binades, and both count it as perhaps theirs.
std::uint64_t count_up_to(const StepFindings& step, double magnitude) {
  int exponent = 0;
  const int between = std::frexp(step.scale, &exponent) == 0.5 ? 0 : 1;
  std::uint64_t larger = 0, before = 0;  // before: of both this binade and the one below
  int last = std::numeric_limits<int>::min();
  for (const BinadeCount& binade : step.binades) {
    if (between == 0 || binade.exponent != last + 1) before = 0;
    const std::uint64_t count = binade.count.high - std::min(binade.count.high, before);
    if (std::ldexp(1.0, binade.exponent + 1 + between) > magnitude) larger += count;
    before = count;
    last = binade.exponent;
  }
  const std::uint64_t all = step.counts.finite_nonzero.low;
  return all - std::min(all, larger);
}

std::uint64_t noise_in(const TensorFindings& bias, const TensorFindings& terms) {
  std::uint64_t noise = 0;
  for (const StepFindings& step : bias.per_step) {
    const auto same = terms.per_step.find(step.step);
    const auto most = same ? noise_of_sums(terms, *same, bias.shape[0]) : std::nullopt;
    if (most) noise += count_up_to(step, *most);
  }
  const auto of = static_cast<double>(bias.counts.finite_nonzero.high);
  return static_cast<double>(noise) >= kLeastShare * of ? noise : 0;
}

/// The module's path of a bias: "attention.qkv" of "weight_grad/attention.qkv.bias".
std::optional<std::string_view> module_of_bias(const TensorFindings& tensor) {
  constexpr std::string_view kBias = ".bias";
  const std::string_view path = path_of(tensor.name);
  const bool bias = tensor.role == log::Role::weight_grad && tensor.shape.size() == 1 &&
                    tensor.shape[0] > 0 && path.ends_with(kBias);
  return bias ? std::optional(path.substr(0, path.size() - kBias.size())) : std::nullopt;
}

}  // namespace

void mark_rounding_noise(Analysis& analysis) {
  for (LogFindings& log : analysis.logs) {
    ByPath terms;
    for (const TensorFindings& t : log.tensors) {
      if (t.role == log::Role::activation_grad) terms.try_emplace(path_of(t.name), &t);
    }
    if (terms.empty()) continue;
    for (TensorFindings& t : log.tensors) {
      const auto module = module_of_bias(t);
      const auto found = module ? terms.find(*module) : terms.end();
      if (found != terms.end()) t.rounding_noise = noise_in(t, *found->second);
    }
  }
}

}  // namespace halfscope::analyzers::underflow
