// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/rounding_noise.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "analyzers/underflow/modules.hpp"

namespace halfscope::analyzers::underflow {
namespace {

/// A smaller share of a tensor is not reported: any gradient has some small values.
constexpr double kLeastShare = 0.02;
/// Rounding noise is at most this fraction of what a sum of independent terms would be.
constexpr double kMostOfSum = 0x1p-6;

using ByPath = std::unordered_map<std::string_view, const TensorFindings*>;

/// Returns the largest relative change that one rounding of a term makes.
double unit_roundoff(const TensorFindings& tensor) {
  int precision = kBinary64.precision;
  for (const auto& dtype : {tensor.source_dtype, tensor.computed_dtype}) {
    if (dtype) precision = std::min(precision, format_of(*dtype).precision);
  }
  return std::ldexp(1.0, -precision);
}

/// Returns the root mean square of a step's values, without the loss scale; empty if unknown.
std::optional<double> root_mean_square(const StepFindings& step) {
  const auto all = static_cast<double>(step.counts.zero.low + step.counts.finite_nonzero.low);
  if (!step.moments || all == 0) return std::nullopt;
  return std::sqrt(step.moments->sum_squares / all) / step.scale;
}

/// The gradient of a bias. Its values are sums over the terms of a module.
struct Sums {
  std::string_view module;  ///< "attention.qkv" of "weight_grad/attention.qkv.bias"
  std::uint64_t count = 0;  ///< number of sums at one step
  /// The log has the number and the format of the terms, but not their values.
  bool unseen_terms = false;
};

/// Returns the rounding error that a sum over a step's terms may have. Adding n terms x one after
/// another has an error of at most sqrt(n) u sum |x|, except in rare cases (Higham and Mary, SIAM
/// J. Sci. Comput. 41, 2019), and sum |x| is at most n times their root mean square. 16-bit terms
/// are added up in FP32 and have rounding errors of their own. Terms that the log lacks are assumed
/// to be independent: then the root mean square of the sums is sqrt(n) times that of the terms.
std::optional<double> noise_of_sums(const Sums& sums, const StepFindings& sum,
                                    const TensorFindings& terms, const StepFindings& term) {
  const auto magnitude = root_mean_square(sums.unseen_terms ? sum : term);
  if (!magnitude) return std::nullopt;
  const double n = static_cast<double>(term.counts.zero.low + term.counts.finite_nonzero.low) /
                   static_cast<double>(sums.count);
  const double independent = sums.unseen_terms ? *magnitude : *magnitude * std::sqrt(n);
  const double of_terms = unit_roundoff(terms);
  const double of_sum = std::min(of_terms, std::ldexp(1.0, -kBinary32.precision));
  return independent * std::min(of_sum * n + of_terms, kMostOfSum);
}

/// Returns the number of nonzero values of a step that are surely no larger than `magnitude`: all
/// but those that may be larger. A value of uncertain binade is counted in two or more neighbouring
/// ones: in two of the larger binades, or in the last of the others and the first of the larger.
std::uint64_t count_up_to(const StepFindings& step, double magnitude) {
  std::uint64_t larger = 0, perhaps = 0, below = 0, across = 0;
  bool first = true;
  for (const BinadeCount& binade : step.binades) {
    const std::uint64_t unsure = binade.count.high - binade.count.low;
    if (std::ldexp(1.0, binade.exponent + 1) <= magnitude) {
      below = unsure;
      continue;
    }
    if (std::exchange(first, false)) across = std::min(below, unsure);
    larger += binade.count.low;
    perhaps += unsure;
  }
  const std::uint64_t all = step.counts.finite_nonzero.low;
  return all - std::min(all, larger + (perhaps + across) / 2);
}

std::uint64_t noise_in(const TensorFindings& bias, const Sums& sums, const TensorFindings& terms) {
  std::uint64_t noise = 0;
  for (const StepFindings& step : bias.per_step) {
    const auto same = terms.per_step.find(step.step);
    const auto most = same ? noise_of_sums(sums, step, terms, *same) : std::nullopt;
    if (!most) continue;
    const std::uint64_t below = count_up_to(step, *most);
    noise += sums.unseen_terms ? std::min(below, sums.count) : below;
  }
  const auto of = static_cast<double>(bias.counts.finite_nonzero.high);
  return static_cast<double>(noise) >= kLeastShare * of ? noise : 0;
}

/// Returns the sums of a bias's gradient; empty for other tensors. in_proj_bias belongs to
/// torch.nn.MultiheadAttention and similar modules. It has the queries', keys' and values' parts
/// one after another; no module returns their terms. Only the keys' third can be noise, and the
/// module's output has as many terms as a third.
std::optional<Sums> sums_of(const TensorFindings& tensor) {
  constexpr std::string_view kBias = ".bias", kPacked = ".in_proj_bias";
  const std::string_view path = path_of(tensor.name);
  if (tensor.role != log::Role::weight_grad || tensor.shape.size() != 1) return std::nullopt;
  const std::uint64_t size = tensor.shape[0];
  const auto module = [&](std::string_view end) {
    return path.substr(0, path.size() - end.size());
  };
  if (path.ends_with(kBias) && size > 0) return Sums{module(kBias), size};
  if (!path.ends_with(kPacked) || size == 0 || size % 3 != 0) return std::nullopt;
  return Sums{module(kPacked), size / 3, true};
}

/// Returns the activation gradient that a bias sums up; for attention, that of its output.
const TensorFindings* terms_of(const Sums& sums, const ByPath& all) {
  for (const std::string_view output : {"", ".0", ".out_proj"}) {
    if (!output.empty() && !sums.unseen_terms) break;
    const auto found = all.find(std::string(sums.module).append(output));
    if (found != all.end()) return found->second;
  }
  return nullptr;
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
      const auto sums = sums_of(t);
      const TensorFindings* const found = sums ? terms_of(*sums, terms) : nullptr;
      if (found != nullptr) t.rounding_noise = noise_in(t, *sums, *found);
    }
  }
}

}  // namespace halfscope::analyzers::underflow
