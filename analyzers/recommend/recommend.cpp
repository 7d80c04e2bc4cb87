// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/recommend.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "analyzers/recommend/parts.hpp"
#include "analyzers/underflow/clipped.hpp"
#include "analyzers/underflow/lowest_scale.hpp"
#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers::recommend {

using underflow::Analysis;
using underflow::LogFindings;
using underflow::RecommendOptions;
using underflow::Target;
using underflow::TensorFindings;

namespace {

/// Returns true if the log has magnitudes of single gradients without their counts.
bool has_gradient_peaks(const Analysis& analysis) {
  return std::ranges::any_of(analysis.logs, [](const LogFindings& log) {
    return std::ranges::any_of(log.peaks, [](const frames::StepPeak& peak) {
      return is_gradient(peak.role) && !peak.tensor.empty();
    });
  });
}

/// Returns the reason why no scale can be recommended; empty if one can.
std::optional<NoScale> why_none(const Tensors& tensors, bool has_peak, bool peaks_alone) {
  if (tensors.empty() && !peaks_alone) return NoScale::no_gradients;
  if (has_peak) return std::nullopt;
  if (tensors.empty()) return NoScale::no_finite_values;
  bool any_zero = false;
  for (const TensorFindings* t : tensors) {
    if (t->counts.finite_nonzero.high != 0) return NoScale::unbounded;
    any_zero = any_zero || t->counts.zero.high != 0;
  }
  return any_zero ? NoScale::all_zero : NoScale::no_finite_values;
}

void find_overflow_without_cure(const Analysis& analysis, Recommendation& r) {
  for (const TensorFindings& t : analysis.tensors()) {
    const bool forward = t.role == log::Role::activation || t.role == log::Role::weight;
    const bool infinite = t.computed_in_fp16() && t.counts.inf.low != 0;
    if (forward && (infinite || t.classes_at(analysis.target, 0).overflow.low != 0)) {
      r.overflow_without_cure.push_back(t.name);
    }
  }
}

/// Returns true if FP16 is known to have made some zeros before they were counted.
bool is_blind(const Tensors& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const auto* t) {
    return !t->underflow_identifiable && !t->hidden_by_buckets && t->counts.total != 0;
  });
}

/// Bounds `lowest_log2` if the log's buckets do not determine it.
void bound_lowest(const Tensors& tensors, const Target& target, double most_flushed,
                  Recommendation& r) {
  const bool hidden = std::any_of(tensors.begin(), tensors.end(),
                                  [](const auto* t) { return t->hidden_by_buckets; });
  r.lowest_at_least_log2 =
      underflow::lowest_log2(tensors, target, most_flushed, underflow::Take::best);
  if (!hidden) {
    r.lowest_if_zeros_log2 =
        underflow::lowest_log2(tensors, target, most_flushed, underflow::Take::zeros);
  }
  r.underflow_not_identifiable = r.lowest_at_least_log2.has_value();
}

void find_lowest(const Tensors& tensors, const Target& target, const RecommendOptions& options,
                 Recommendation& r) {
  const double most_flushed = options.target_underflow;
  r.underflow_not_identifiable = is_blind(tensors);
  if (!r.underflow_not_identifiable) {
    r.lowest_log2 = underflow::lowest_log2(tensors, target, most_flushed);
    const bool bounded = std::any_of(tensors.begin(), tensors.end(),
                                     [](const auto* t) { return underflow::is_bounded(*t); });
    if (!r.lowest_log2 && bounded) bound_lowest(tensors, target, most_flushed, r);
  }
  r.above_target =
      underflow::names_above_target(tensors, target, *r.static_log2, options.target_underflow);
}

/// In a format with binary32's range the static scale is 1 if no scale is needed.
void choose_none(const Tensors& tensors, const Target& target, const RecommendOptions& options,
                 Recommendation& r) {
  const bool kept =
      underflow::names_above_target(tensors, target, 0, options.target_underflow).empty();
  const bool known = std::all_of(tensors.begin(), tensors.end(), [](const auto* t) {
    return t->underflow_identifiable || t->counts.total == 0;
  });
  const bool wide = wide_range(target.format);
  // Below a scale that may have made NaN, the size of gradients is unknown.
  const bool held = wide || !r.limited_by->nan_at;
  r.none_needed = kept && (known || wide) && held && *r.highest_log2 >= 0;
  if (!r.none_needed || !wide) return;
  r.static_log2 = 0;
  r.highest_if_half_log2.reset();
}

std::vector<std::string> roles_found(const Analysis& analysis) {
  std::set<std::string> roles;
  for (const TensorFindings& t : analysis.tensors()) roles.emplace(log::name_of(t.role));
  return {roles.begin(), roles.end()};
}

/// Sets the largest scale, or the reason why there is none.
void find_highest(const Basis& basis, const Tensors& tensors, bool peaks_alone, Recommendation& r) {
  add_peaks(r, basis, tensors, peaks_alone);
  for (const LogMaxima& log : r.peaks.logs) {
    if (log.unread.lacking > r.unread.lacking) r.unread = log.unread;
  }
  r.incomplete_steps = underflow::incomplete_steps(basis.analysis);
  if (r.incomplete_steps != 0 || r.unread.lacking != 0) r.overflow_not_identifiable = true;
  if (!r.no_scale) r.no_scale = why_none(tensors, r.highest_log2.has_value(), peaks_alone);
  if (r.no_scale) r.highest_log2.reset();
  if (!(r.highest_if_half_log2 < r.highest_log2)) r.highest_if_half_log2.reset();
}

/// Returns true if the log's last recorded step has infinities or NaN that come from the model.
bool ends_in_nan(const overflow::OverflowFindings& overflow, const std::string& log) {
  return std::ranges::any_of(overflow.events, [&](const overflow::OverflowEvent& event) {
    return event.log == log && !event.what_if && event.cause == overflow::Cause::nan_in_model &&
           event.to_the_end;
  });
}

std::optional<NanInModel> first_in_model(const overflow::OverflowFindings& found) {
  for (const overflow::OverflowEvent& event : found.events) {
    if (event.cause != overflow::Cause::nan_in_model) continue;
    return NanInModel{event.log, event.tensor, event.step,
                      event.nan.low != 0 || event.inf.low == 0};
  }
  return std::nullopt;
}

}  // namespace

Recommendation static_scale(const Basis& basis) {
  const Analysis& analysis = basis.analysis;
  const Tensors tensors = underflow::loss_scaled_tensors(analysis);
  const bool peaks_alone = tensors.empty() && has_gradient_peaks(analysis);
  Recommendation r;
  r.logs = analysis.names();
  r.format = analysis.target.name;
  r.wide_format = wide_range(analysis.target.format);
  r.roles_found = roles_found(analysis);
  r.asked = basis.options;
  find_overflow_without_cure(analysis, r);
  find_highest(basis, tensors, peaks_alone, r);
  if (r.no_scale) return r;

  r.static_log2 = r.highest_log2;
  if (peaks_alone) {
    r.lowest_log2 = underflow::lowest_log2_of_peaks(analysis);
    r.underflow_not_identifiable = !r.lowest_log2;
  } else {
    choose_none(tensors, analysis.target, basis.options, r);
    find_lowest(tensors, analysis.target, basis.options, r);
  }
  const Magnitude overflow = boundaries(analysis.target.format).overflow;
  r.headroom_bits =
      std::log2(to_double(overflow)) - std::log2(r.limited_by->max_abs) - *r.static_log2;
  r.flushed_at_1 = flushed_at(analysis, 0, 0).front();
  r.flushed_at_recommended = flushed_at(analysis, *r.static_log2, *r.static_log2).front();
  return r;
}

void refuse_divergence(Recommendation& advice, const overflow::OverflowFindings& overflow) {
  if (!advice.static_log2 || !advice.limited_by) return;
  const int highest = *advice.highest_log2 + advice.asked.headroom_bits;
  if (!underflow::diverges(highest, ends_in_nan(overflow, advice.limited_by->log))) return;
  advice.static_log2.reset();
  advice.no_scale = NoScale::diverges;
  advice.above_target.clear();
  advice.flushed_at_recommended = {};
}

bool Recommendation::all_steps_censored() const {
  if (!static_log2 || !limited_by || !limited_by->censored) return false;
  return skip && skip->steps != 0 && skip->exceedances + skip->perhaps == skip->steps;
}

replay::StaticAdvice Recommendation::static_advice() const {
  using replay::NoStatic;
  if (no_scale == NoScale::diverges) return {highest_log2, NoStatic::diverges, false};
  if (!static_log2) return {{}, NoStatic::unknown, false};
  if (all_steps_censored()) return {static_log2, NoStatic::upper_bound, true};
  return {static_log2, {}, overflow_not_identifiable};
}

Recommendation recommend(const Basis& basis) {
  Recommendation advice = static_scale(basis);
  advice.nan_in_model = first_in_model(basis.overflow);
  refuse_divergence(advice, basis.overflow);
  return advice;
}

}  // namespace halfscope::analyzers::recommend
