// SPDX-License-Identifier: Apache-2.0
// The magnitudes that bound a loss scale: from histograms, every-step scalars and skipped steps.
#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "analyzers/recommend/parts.hpp"
#include "analyzers/underflow/clipped.hpp"
#include "analyzers/underflow/lowest_scale.hpp"
#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers::recommend {

using scale_history::SkipEpisode;
using underflow::LogFindings;
using underflow::LogScalars;
using underflow::StepFindings;
using underflow::StepMagnitude;
using underflow::TensorFindings;

namespace {

/// A magnitude, and the limit that it sets for the scale.
struct Peak {
  StepMagnitude magnitude;
  Limit limit;
};

/// Keeps the peak that allows the smallest scale. Among equal peaks keeps the one with more
/// evidence, else the first. Returns log2 of the largest power-of-two scale, at most 2^40, at which
/// the peak stays the requested headroom below overflow.
int limit_by(const Peak& peak, Format format, Recommendation& advice) {
  const int k = std::min(underflow::kLastLog2Scale,  // a larger scale has no benefit
                         peak.magnitude.highest_safe_log2(format) - advice.asked.headroom_bits);
  advice.highest_log2 = std::min(advice.highest_log2.value_or(k), k);
  advice.overflow_not_identifiable |= peak.limit.censored;
  // An infinity is stronger evidence than NaN, and a tensor than only its role.
  const auto missing = [](const Limit& limit) {
    return std::pair(limit.nan_at.has_value(), limit.from_scalars);
  };
  std::optional<Limit>& most = advice.limited_by;
  const bool says_more =
      most && peak.limit.max_abs == most->max_abs && missing(peak.limit) < missing(*most);
  if (!most || says_more || peak.limit.max_abs > most->max_abs) most = peak.limit;
  return k;
}

/// Returns the peak of the largest finite magnitude of a step; empty if there is none.
std::optional<Peak> finite_peak(const TensorFindings& tensor, const StepFindings& step) {
  const auto magnitude = underflow::finite_magnitude(step);
  if (!magnitude) return std::nullopt;
  Peak peak{*magnitude, {*tensor.log, tensor.name, step.step, *step.max_abs}};
  // A bucket that contains zero, or is wider than a factor of two, only bounds the magnitude.
  const bool nothing_sure = step.counts.finite_nonzero.low == 0;
  peak.limit.bounded =
      nothing_sure || step.max_abs_at_least.value_or(*step.max_abs) * 2 < *step.max_abs;
  return peak;
}

using StepSet = std::set<std::int64_t>;

/// Returns the steps at which the log has a magnitude of any gradient of the role.
StepSet steps_with(const underflow::LogFindings& log, log::Role role) {
  StepSet steps;
  for (const underflow::TensorFindings& t : log.tensors) {
    if (t.role != role) continue;
    for (const underflow::StepFindings& step : t.per_step) steps.insert(step.step);
  }
  for (const frames::StepPeak& peak : log.peaks) {
    if (peak.role == role) steps.insert(peak.step);
  }
  return steps;
}

/// Returns the steps at which a kind of gradients was not read that other steps of the log have, or
/// at which the recorder missed some (`gradients_missing`, docs/run-log.md). Ignores steps without
/// any.
UnreadSteps unread_steps(const underflow::LogFindings& log) {
  constexpr std::array kRoles = {log::Role::activation_grad, log::Role::weight_grad};
  const std::array read = {steps_with(log, kRoles[0]), steps_with(log, kRoles[1])};
  StepSet all = read[0];
  all.insert(read[1].begin(), read[1].end());
  UnreadSteps unread;
  unread.of = all.size();
  unread.by_recorder = log.manifest && log.manifest->about->contains("recorder");
  for (std::size_t i = 0; i < kRoles.size(); ++i) {
    if (read[i].empty()) continue;  // the log has none of this role anywhere
    const std::size_t lacking = all.size() - read[i].size();
    std::ranges::set_difference(all, read[i], std::inserter(unread.steps, unread.steps.end()));
    if (lacking > unread.lacking) unread.lacking = lacking, unread.role = kRoles[i];
  }
  for (const log::StepScalars& scalars : log.scalars) {
    if (underflow::misses_gradients(scalars)) unread.steps.insert(scalars.step);
  }
  return unread;
}

/// The evidence about one step.
struct Step {
  std::optional<int> highest_log2;  ///< empty: no magnitude is known
  bool censored = false;            ///< the magnitude may have been larger
  bool bounded = false;             ///< an infinity shows a lower bound of the magnitude
  bool broken = false;              ///< an infinity or NaN shows no magnitude
};

/// The peaks of one log. Adds them to a recommendation.
class LogPeaks {
 public:
  LogPeaks(const Basis& basis, const LogFindings& log, Recommendation& to)
      : basis_(basis), log_(log), scalars_(log), to_(to) {
    for (const TensorFindings& t : log.tensors) {
      if (t.computed_in_fp16()) in_fp16_.insert(t.role);
      any_tensor_ |= t.loss_scaled;
    }
  }

  /// Adds the tensors that a loss scale acts on.
  void add_tensors() {
    for (const TensorFindings& t : log_.tensors) {
      if (t.loss_scaled) add(t);
    }
  }

  /// Adds the peaks of the every-step scalars, also of steps without histograms, if they `count`.
  void add_scalars(bool count) {
    for (const frames::StepPeak& step : log_.peaks) {
      if (!std::isfinite(step.max_abs)) to_.nonfinite_steps.push_back(step.step);
      if (!count) continue;
      if (log_.was_clipped(step.role)) to_.overflow_not_identifiable = to_.clipped = true;
      const bool of_role = step.tensor.empty();
      if (!of_role && !is_gradient(step.role)) continue;
      const std::string name = of_role ? std::string(log::name_of(step.role)) : step.tensor;
      Peak peak{{}, {log_.name, name, step.step, step.max_abs, false, of_role}};
      if (std::isfinite(step.max_abs)) {
        peak.magnitude.recorded = magnitude_of(step.max_abs);
        if (step.max_abs > 0) add(peak);
        continue;
      }
      const bool in_fp16 = in_fp16_.contains(step.role), nan = std::isnan(step.max_abs);
      const bool bounds = basis_.overflow.bounds(log_.name, step.role, step.step, in_fp16, nan);
      const auto scale = bounds ? scalars_.loss_scale(step.step) : std::optional<double>();
      if (!scale) {
        add_broken(step.step, !bounds);
      } else {
        peak.magnitude = underflow::infinite_magnitude(*scale);
        add_censored(peak, nan);
      }
    }
  }

  /// Adds what bounds the scale if FP16 also holds sums over microbatches.
  void add_sums() {
    std::optional<int>& highest = to_.highest_if_half_log2;
    for (const auto& [step, sum] : scalars_.sums()) {
      const int k =
          StepMagnitude{magnitude_of(sum)}.highest_safe_log2(basis_.analysis.target.format) -
          to_.asked.headroom_bits;
      highest = std::min(highest.value_or(k), k);
    }
  }

  LogMaxima maxima() const {
    LogMaxima maxima{log_.name, {}, {}, unread_steps(log_)};
    for (const auto& [number, step] : steps_) {
      if (step.broken && !step.bounded) {
        maxima.left_out.push_back(number);
      } else if (step.highest_log2) {
        maxima.steps.push_back({number, *step.highest_log2, step.censored || log_.clipped,
                                maxima.unread.steps.contains(number)});
      }
    }
    return maxima;
  }

 private:
  void add(const TensorFindings& t) {
    // If infinities were left out of the log, the size of the gradients behind them is unknown.
    if (!t.counts.nonfinite_known) to_.overflow_not_identifiable = true;
    if (log_.was_clipped(t.role)) to_.overflow_not_identifiable = to_.clipped = true;
    for (const StepFindings& step : t.per_step) {
      if (const auto peak = finite_peak(t, step)) add(in_fp16(*peak, t.role), &t);
      if (underflow::nonfinite(step)) add_nonfinite(t, step);
      if (step.counts.nonfinite_known) continue;
      const log::StepScalars* told = scalars_.at(step.step);
      const bool sound = told != nullptr && told->found_inf == false;
      if (!sound) steps_[step.step].censored = true;  // the log may lack its infinities
    }
  }

  /// Returns the peak that FP16 held: with microbatches, the largest part of the sum. The scalars
  /// do not name the part's tensor, so its limit names the role.
  Peak in_fp16(const Peak& peak, log::Role role) const {
    const double part = scalars_.in_fp16(role, peak.limit.step, peak.limit.max_abs);
    if (part == peak.limit.max_abs) return peak;
    const std::string name(log::name_of(role));
    return {{magnitude_of(part)}, {peak.limit.log, name, peak.limit.step, part, false, true}};
  }

  void add_nonfinite(const TensorFindings& t, const StepFindings& step) {
    const bool infinite = step.counts.inf.low != 0 && basis_.overflow.bounds(t, step);
    const bool bounds = infinite || basis_.overflow.nan_bounds(t, step);
    const auto least =
        bounds ? underflow::infinite_magnitude(t, step, scalars_) : std::optional<StepMagnitude>();
    to_.nonfinite_steps.push_back(step.step);
    if (least) return add_censored({*least, {*t.log, t.name, step.step}}, !infinite, &t);
    add_broken(step.step, !bounds);
    if (bounds && t.computed_in_fp16()) to_.no_scale = NoScale::scale_unknown;
  }

  /// Adds infinities or NaN of a step that show no magnitude. scale_known true: no rounding to
  /// binary16 made them (or, for NaN, something else may explain it). scale_known false: the loss
  /// scale that they were computed at is unknown.
  void add_broken(std::int64_t step, bool scale_known) {
    if (any_tensor_) steps_[step].broken = true;
    to_.overflow_not_identifiable |= !scale_known;
  }

  void add_censored(Peak peak, bool nan, const TensorFindings* tensor = nullptr) {
    peak.limit.max_abs = peak.magnitude.unscaled();
    peak.limit.censored = true;
    if (nan) peak.limit.nan_at = peak.magnitude.scale;
    add(peak, tensor);
  }

  void add(const Peak& peak, const TensorFindings* tensor = nullptr) {
    const Format format = basis_.analysis.target.format;
    const int k = limit_by(peak, format, to_);
    if (tensor != nullptr) {
      const auto [at, is_new] = to_.peaks.highest_log2.try_emplace(tensor, k);
      at->second = std::min(at->second, k);
    }
    if (!any_tensor_) return;
    Step& step = steps_[peak.limit.step];
    const int highest = peak.magnitude.highest_safe_log2(format);
    step.highest_log2 = std::min(step.highest_log2.value_or(highest), highest);
    step.censored |= peak.magnitude.censored;
    step.bounded |= peak.magnitude.censored;
  }

  const Basis& basis_;
  const LogFindings& log_;
  LogScalars scalars_;
  Recommendation& to_;
  std::set<log::Role> in_fp16_;  ///< roles that have a tensor computed in binary16
  bool any_tensor_ = false;      ///< a loss scale acts on some tensor
  std::map<std::int64_t, Step> steps_;
};

/// Returns the largest recorded finite gradient, unscaled; empty if there is none.
std::optional<double> largest_finite(const underflow::Analysis& analysis) {
  std::optional<double> largest;
  for (const underflow::LogFindings& log : analysis.logs) {
    for (const underflow::TensorFindings& t : log.tensors) {
      if (t.loss_scaled) largest = std::max(largest, t.max_abs);
    }
    for (const frames::StepPeak& peak : log.peaks) {
      const bool counts = is_gradient(peak.role) && std::isfinite(peak.max_abs) && peak.max_abs > 0;
      if (counts) largest = std::max(largest, std::optional(peak.max_abs));
    }
  }
  return largest;
}

/// Returns true if no scale made the gradients of these steps too large. The rule is that of
/// recorded infinities (overflow_cause_gradients.cpp): far lower scales did not help, or a scale of
/// about 1 did not, although other gradients are far below overflow.
bool in_vain(const SkipEpisode& episode, std::optional<double> largest) {
  if (!largest || !(*largest > 0)) return false;
  const double room = std::log2(underflow::infinite_magnitude(episode.least).unscaled() / *largest);
  const double lowered = std::log2(episode.most / episode.least);
  return (room >= overflow::kOutOfReach && lowered >= overflow::kLowered) ||
         (room >= overflow::kFar && episode.least <= 2);
}

Limit limit_of(const scale_history::TimelineFacts& facts, const SkipEpisode& episode) {
  Limit limit;
  limit.log = facts.log;
  limit.name = std::string(log::name_of(log::Role::weight_grad));
  limit.step = episode.last.value_or(episode.first);
  limit.max_abs = underflow::infinite_magnitude(episode.least).unscaled();
  limit.censored = true;
  limit.from_scalars = true;
  limit.skipped_at = episode.least;
  limit.numbered = facts.numbered;
  if (limit.step != episode.first) limit.first_step = episode.first;
  return limit;
}

}  // namespace

void add_peaks(Recommendation& advice, const Basis& basis, const Tensors& tensors,
               bool peaks_alone) {
  std::vector<LogPeaks> logs;
  for (const LogFindings& log : basis.analysis.logs) logs.emplace_back(basis, log, advice);
  for (LogPeaks& log : logs) log.add_tensors();
  for (LogPeaks& log : logs) {
    log.add_scalars(!tensors.empty() || peaks_alone);
    log.add_sums();
    advice.peaks.logs.push_back(log.maxima());
  }
  std::vector<std::int64_t>& nonfinite = advice.nonfinite_steps;
  std::ranges::sort(nonfinite);
  nonfinite.erase(std::unique(nonfinite.begin(), nonfinite.end()), nonfinite.end());
  if (!advice.limited_by) return;
  // Only runs in binary16 have a scaler that skips steps.
  const auto skipped = skip_limit(basis, largest_finite(basis.analysis));
  if (!skipped || skipped->max_abs <= advice.limited_by->max_abs) return;
  limit_by({{magnitude_of(skipped->max_abs)}, *skipped}, basis.analysis.target.format, advice);
}

ScaleRange scale_range(const Basis& basis, const Peaks& peaks, const Tensors& tensors) {
  ScaleRange range{
      underflow::lowest_log2(tensors, basis.analysis.target, basis.options.target_underflow), {}};
  for (const TensorFindings* t : tensors) {
    const auto found = peaks.highest_log2.find(t);
    if (found == peaks.highest_log2.end()) continue;
    range.highest_log2 = std::min(range.highest_log2.value_or(found->second), found->second);
  }
  return range;
}

std::optional<Limit> skip_limit(const Basis& basis, std::optional<double> largest) {
  std::optional<Limit> limit;
  for (const scale_history::TimelineFacts& facts : basis.timelines) {
    const auto log = std::ranges::find(basis.analysis.logs, facts.log, &LogFindings::name);
    for (const SkipEpisode& episode : scale_history::skip_episodes(*log, facts)) {
      if (in_vain(episode, largest)) continue;
      const Limit found = limit_of(facts, episode);
      if (!limit || found.max_abs > limit->max_abs) limit = found;
    }
  }
  return limit;
}

}  // namespace halfscope::analyzers::recommend
