// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/recommend.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyzers/recommend/flushed.hpp"
#include "analyzers/recommend/peaks.hpp"
#include "analyzers/recommend/skip_limit.hpp"
#include "analyzers/underflow/lost_mass.hpp"
#include "analyzers/underflow/lowest_scale.hpp"
#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers::recommend {

using underflow::Analysis;
using underflow::LogFindings;
using underflow::RecommendOptions;
using underflow::StepFindings;
using underflow::Target;
using underflow::TensorFindings;

namespace {

constexpr int kHighestLog2 = underflow::kLastLog2Scale;  // 2^40; a larger scale has no benefit

/// Returns log2 of the largest power-of-two scale, at most kHighestLog2, at which a peak stays
/// `headroom` binades below overflow.
int highest_log2(const Peak& peak, Format format, int headroom) {
  return std::min(kHighestLog2, peak.magnitude.highest_safe_log2(format) - headroom);
}

using Tensors = std::vector<const TensorFindings*>;

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

/// Keeps the peak that allows the smallest scale. Among equal peaks keeps the one with more
/// evidence, else the first.
void limit_by(const Peak& peak, Format format, const RecommendOptions& options, Recommendation& r) {
  const int k = highest_log2(peak, format, options.headroom_bits);
  r.highest_log2 = std::min(r.highest_log2.value_or(k), k);
  r.overflow_not_identifiable |= peak.limit.censored;
  // An infinity is stronger evidence than NaN, and a tensor than only its role.
  const auto missing = [](const Limit& limit) {
    return std::pair(limit.nan_at.has_value(), limit.from_scalars);
  };
  const bool says_more = r.limited_by && peak.limit.max_abs == r.limited_by->max_abs &&
                         missing(peak.limit) < missing(*r.limited_by);
  if (!r.limited_by || says_more || peak.limit.max_abs > r.limited_by->max_abs) {
    r.limited_by = peak.limit;
  }
}

/// Sets limited_by and highest_log2 from the histograms.
void limit_by_tables(const AllPeaks& all, const Tensors& tensors, Recommendation& r) {
  const Basis& basis = all.basis();
  const Format format = basis.analysis.target.format;
  PeakVisitor visit;
  visit.peak = [&](const Peak& peak) { limit_by(peak, format, basis.options, r); };
  for (const TensorFindings* t : tensors) {
    const LogPeaks& peaks = all.of(*t->log);
    // If infinities were left out of the log, the size of the gradients behind them is unknown.
    if (!t->counts.nonfinite_known) r.overflow_not_identifiable = true;
    if (peaks.log().was_clipped(t->role)) r.overflow_not_identifiable = r.clipped = true;
    visit.nonfinite = [&](std::int64_t, bool scale_known) {
      if (scale_known) return;
      r.overflow_not_identifiable = true;
      if (t->computed_in_fp16()) r.no_scale = NoScale::scale_unknown;
    };
    peaks.of_tensor(*t, visit);
  }
}

/// Sets the same fields from the every-step scalars, also for steps without histograms.
void limit_by_scalars(const AllPeaks& all, const LogFindings& log, Recommendation& r) {
  const Basis& basis = all.basis();
  PeakVisitor visit;
  visit.peak = [&](const Peak& peak) {
    limit_by(peak, basis.analysis.target.format, basis.options, r);
  };
  visit.nonfinite = [&](std::int64_t, bool scale_known) {
    r.overflow_not_identifiable |= !scale_known;
  };
  all.of(log.name).of_scalars(visit);
  const bool clipped = std::ranges::any_of(
      log.peaks, [&](const frames::StepPeak& peak) { return log.was_clipped(peak.role); });
  if (clipped) r.overflow_not_identifiable = r.clipped = true;
}

/// Sets the same fields from skipped steps whose magnitudes are not in the log. Only runs in
/// binary16 have a scaler that skips steps.
void limit_by_skips(const Basis& basis, Recommendation& r) {
  const std::optional<Limit> limit = skip_limit(basis.analysis, largest_finite(basis.analysis));
  if (!limit || limit->max_abs <= r.limited_by->max_abs) return;
  limit_by({{magnitude_of(limit->max_abs)}, *limit}, basis.analysis.target.format, basis.options,
           r);
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
  if (r.none_needed && wide) r.static_log2 = 0;
}

std::vector<std::int64_t> nonfinite_steps(const Analysis& analysis, const Tensors& tensors) {
  std::set<std::int64_t> steps;
  for (const TensorFindings* t : tensors) {
    for (const StepFindings& step : t->per_step) {
      if (underflow::nonfinite(step)) steps.insert(step.step);
    }
  }
  for (const LogFindings& log : analysis.logs) {
    for (const frames::StepPeak& peak : log.peaks) {
      if (!std::isfinite(peak.max_abs)) steps.insert(peak.step);
    }
  }
  return {steps.begin(), steps.end()};
}

std::vector<std::string> roles_found(const Analysis& analysis) {
  std::set<std::string> roles;
  for (const TensorFindings& t : analysis.tensors()) roles.emplace(log::name_of(t.role));
  return {roles.begin(), roles.end()};
}

/// Sets the largest scale, or the reason why there is none.
void find_highest(const AllPeaks& peaks, const Tensors& tensors, bool peaks_alone,
                  Recommendation& r) {
  const Basis& basis = peaks.basis();
  limit_by_tables(peaks, tensors, r);
  for (const LogFindings& log : basis.analysis.logs) {
    if (!tensors.empty() || peaks_alone) limit_by_scalars(peaks, log, r);
    UnreadSteps unread = unread_steps(log);
    if (unread.lacking > r.unread.lacking) r.unread = std::move(unread);
  }
  if (r.limited_by) limit_by_skips(basis, r);
  r.incomplete_steps = underflow::incomplete_steps(basis.analysis);
  if (r.incomplete_steps != 0 || r.unread.lacking != 0) r.overflow_not_identifiable = true;
  if (!r.no_scale) r.no_scale = why_none(tensors, r.highest_log2.has_value(), peaks_alone);
  if (r.no_scale) r.highest_log2.reset();
}

}  // namespace

ScaleRange scale_range(const AllPeaks& peaks, const Tensors& tensors) {
  Recommendation r;
  limit_by_tables(peaks, tensors, r);
  const Basis& basis = peaks.basis();
  return {underflow::lowest_log2(tensors, basis.analysis.target, basis.options.target_underflow),
          r.highest_log2};
}

Recommendation static_scale(const Basis& basis) {
  const Analysis& analysis = basis.analysis;
  const Tensors tensors = underflow::loss_scaled_tensors(analysis);
  const bool peaks_alone = tensors.empty() && has_gradient_peaks(analysis);
  Recommendation r;
  r.logs = analysis.names();
  r.format = analysis.target.name;
  r.wide_format = wide_range(analysis.target.format);
  r.roles_found = roles_found(analysis);
  r.nonfinite_steps = nonfinite_steps(analysis, tensors);
  r.asked = basis.options;
  find_overflow_without_cure(analysis, r);
  find_highest(AllPeaks(basis), tensors, peaks_alone, r);
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
  r.flushed_at_1 = flushed_at(analysis, 0);
  r.flushed_at_recommended = flushed_at(analysis, *r.static_log2);
  return r;
}

}  // namespace halfscope::analyzers::recommend
