// SPDX-License-Identifier: Apache-2.0
// Finds what to keep in FP32: tensors that overflow at every scale, operations whose inner values
// would overflow, and layers that limit the scale of all others.
#include <algorithm>
#include <cmath>
#include <map>

#include "analyzers/recommend/parts.hpp"
#include "analyzers/underflow/layer_inputs.hpp"
#include "analyzers/underflow/modules.hpp"
#include "halfscope/number/convert.hpp"

namespace halfscope::analyzers::recommend {

using underflow::LogFindings;
using underflow::Modules;
using underflow::TensorFindings;

namespace {

using log::Role;

using Kind = KeepInFp32::Kind;
using Why = KeepInFp32::Why;

/// The format's largest finite value.
struct Range {
  explicit Range(const underflow::Target& target)
      : largest(to_double(target.format, target.format.largest_finite())) {}
  /// Returns the largest x for which e^x does not overflow.
  double largest_exponent() const { return std::log(largest); }

  double largest;
};

double largest_of(const TensorFindings* t) { return t && t->max_abs ? *t->max_abs : 0; }

/// Returns the largest sum of squares over the steps, unscaled. It is approximate, which is enough
/// to find values far beyond the format.
double largest_sum_of_squares(const TensorFindings* t) {
  double most = 0;
  if (t == nullptr) return most;
  for (const underflow::StepFindings& step : t->per_step) {
    if (step.moments) most = std::max(most, step.moments->sum_squares / (step.scale * step.scale));
  }
  return most;
}

/// A kind of operation that mixed-precision recipes keep in FP32 (NVIDIA, "Training with Mixed
/// Precision"; the deny lists of AMP), and the module classes that compute it.
struct Classified {
  std::string_view part;  ///< part of the class name
  Kind kind;
};
constexpr Classified kClasses[] = {
    {"Softmax", Kind::softmax},   {"Norm", Kind::normalization}, {"Loss", Kind::loss},
    {"AvgPool", Kind::reduction}, {"Mean", Kind::reduction},     {"Attention", Kind::softmax},
};

std::optional<Kind> kind_of(std::string_view type) {
  for (const Classified& row : kClasses) {
    if (type.find(row.part) != std::string_view::npos) return row.kind;
  }
  return std::nullopt;
}

/// Returns an entry if the module's operation would overflow on the recorded values; else empty.
std::optional<KeepInFp32> evidence(const std::string& module, Kind kind,
                                   const TensorFindings* input, const Range& range) {
  const double largest = largest_of(input);
  if (kind == Kind::softmax && largest > range.largest_exponent()) {
    return KeepInFp32{module, kind, Why::exponential, largest, range.largest};
  }
  if (kind == Kind::normalization && largest * largest > range.largest) {
    return KeepInFp32{module, kind, Why::square, largest, range.largest};
  }
  const double squares = largest_sum_of_squares(input);
  if (kind == Kind::reduction && squares > range.largest) {
    return KeepInFp32{module, kind, Why::sum_of_squares, squares, range.largest};
  }
  return std::nullopt;
}

/// Adds the modules that have evidence. Modules without evidence are omitted: keeping them in FP32
/// is a rule of thumb that AMP follows by itself.
void find_operations(const LogFindings& log, const Range& range, std::vector<KeepInFp32>& found) {
  const Modules modules(log);
  const underflow::LayerInputs inputs(log, modules);
  for (const std::string& module : modules.with_class()) {
    const std::optional<Kind> kind = kind_of(modules.class_of(module));
    if (!kind) continue;
    auto keep = evidence(module, *kind, inputs.of(module), range);
    if (keep) found.push_back(std::move(*keep));
  }
}

Kind kind_of(reduction::Sum sum) {
  switch (sum) {
    case reduction::Sum::mean:
    case reduction::Sum::variance:
    case reduction::Sum::mean_square: return Kind::normalization;
    case reduction::Sum::softmax: return Kind::softmax;
    case reduction::Sum::gradient:
    case reduction::Sum::bias_gradient:
    case reduction::Sum::gradient_norm: break;
  }
  return Kind::reduction;
}

/// Adds sums of layers that overflow or stall if 16-bit addends are added one after another.
void find_sums(const Basis& basis, const Range& range, std::vector<KeepInFp32>& found) {
  if (basis.analysis.target.format.width != 16) return;
  for (const reduction::Reduction& one : basis.reductions) {
    const bool asked =
        one.over == reduction::Over::elements && one.sum != reduction::Sum::gradient_norm &&
        one.order == reduction::Order::sequential && one.format == basis.analysis.target.name;
    const bool overflows = one.facts.overflow > 0;
    if (!asked || (!overflows && !one.stalls())) continue;
    KeepInFp32 keep{one.name, kind_of(one.sum), overflows ? Why::sum_overflows : Why::sum_stalls,
                    overflows ? static_cast<double>(one.facts.overflow) : one.facts.relative_l2(),
                    range.largest};
    keep.sum = one.sum;
    keep.addends = one.count;
    found.push_back(std::move(keep));
  }
}

/// Adds the last activation if its exponential overflows: the softmax of the loss exponentiates it.
void find_logits(const LogFindings& log, const Range& range, std::vector<KeepInFp32>& found) {
  const Modules modules(log);
  const TensorFindings* const logits = underflow::LayerInputs(log, modules).last();
  if (logits == nullptr) return;
  const double largest = largest_of(logits);
  const bool told = std::any_of(found.begin(), found.end(), [&](const KeepInFp32& keep) {
    return keep.kind == Kind::softmax || keep.name == logits->name;
  });
  if (told || largest <= range.largest_exponent()) return;
  found.push_back({logits->name, Kind::logits, Why::softmax_after, largest, range.largest});
}

bool half_loss(const LogFindings& log) {
  return log.manifest && log.manifest->loss_dtype == Dtype::f16;
}

/// Adds the loss if it overflows: the loss itself is multiplied by the scale.
void find_loss(const LogFindings& log, const Range& range, int static_log2,
               std::vector<KeepInFp32>& found) {
  double largest = 0;
  for (const log::StepScalars& scalars : log.scalars) {
    if (scalars.loss && std::isfinite(*scalars.loss)) {
      largest = std::max(largest, std::abs(*scalars.loss));
    }
  }
  if (std::ldexp(largest, static_log2) <= range.largest) return;
  found.push_back({"loss", Kind::loss, half_loss(log) ? Why::half_loss : Why::autocast_loss,
                   largest, range.largest});
}

/// The gradients of one module, and the highest scale that they allow.
struct Group {
  std::string name;
  Tensors tensors;
  int highest_log2 = 0;
};

std::vector<Group> groups_of(const Basis& basis, const Peaks& peaks) {
  std::map<std::string, Tensors> by_name;  // a module of several logs is one group: all must fit
  for (const LogFindings& log : basis.analysis.logs) {
    const Modules modules(log);
    for (const TensorFindings& t : log.tensors) {
      if (t.loss_scaled) by_name[modules.of(t)].push_back(&t);
    }
  }
  std::vector<Group> groups;
  for (auto& [name, tensors] : by_name) {
    const auto highest = scale_range(basis, peaks, tensors).highest_log2;
    if (highest) groups.push_back({name, std::move(tensors), *highest});
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.highest_log2 < b.highest_log2; });
  return groups;
}

/// Adds the layers that limit the scale, until a single scale serves the rest. Adds nothing if more
/// than kMost layers would be needed.
void find_limiting(const Basis& basis, const Recommendation& advice,
                   std::vector<KeepInFp32>& found) {
  constexpr std::size_t kMost = 4;
  if (!advice.static_log2 || advice.above_target.empty()) return;
  if (advice.underflow_not_identifiable) return;  // unknown if a scale serves the rest
  if (advice.harmless()) return;                  // nothing is gained
  const std::vector<Group> groups = groups_of(basis, advice.peaks);
  if (groups.size() < 2) return;
  std::vector<KeepInFp32> removed;
  std::string names;  // layers that allow the same scale share one entry
  for (std::size_t i = 0; i + 1 < groups.size() && i < kMost; ++i) {
    const int next = groups[i + 1].highest_log2, gained = next - groups[0].highest_log2;
    names += (names.empty() ? "" : ", ") + groups[i].name;
    if (next == groups[i].highest_log2) continue;
    removed.push_back(
        {names, Kind::tensor, Why::limits_scale, 0, 0, groups[i].highest_log2, next, gained});
    names.clear();
    Tensors rest;
    for (std::size_t j = i + 1; j < groups.size(); ++j) {
      rest.insert(rest.end(), groups[j].tensors.begin(), groups[j].tensors.end());
    }
    if (scale_range(basis, advice.peaks, rest).serves()) {
      found.insert(found.end(), removed.begin(), removed.end());
      return;
    }
  }
}

}  // namespace

std::vector<KeepInFp32> keep_in_fp32(const Basis& basis, const Recommendation& advice) {
  const Range range(basis.analysis.target);
  std::vector<KeepInFp32> found;
  for (const std::string& name : advice.overflow_without_cure) {
    found.push_back({name, Kind::tensor, Why::overflows});
  }
  for (const LogFindings& log : basis.analysis.logs) {
    find_operations(log, range, found);
    find_logits(log, range, found);
    if (advice.static_log2) find_loss(log, range, *advice.static_log2, found);
  }
  find_sums(basis, range, found);
  find_limiting(basis, advice, found);
  return found;
}

}  // namespace halfscope::analyzers::recommend
