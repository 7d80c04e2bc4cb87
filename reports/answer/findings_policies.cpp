// SPDX-License-Identifier: Apache-2.0
// Findings on the loss-scaling policy of a run: steps that other settings would not have lost. A
// few skipped steps are normal for dynamic loss scaling and no finding.
#include <fmt/format.h>

#include <algorithm>

#include "halfscope/log/error.hpp"
#include "reports/answer/findings_list.hpp"
#include "reports/answer/first_words.hpp"
#include "reports/answer/policy_words.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer::found {

using namespace analyzers;

using analyzers::replay::PolicyStudy;
using analyzers::replay::StepSeries;
using analyzers::replay::Trace;

namespace {

/// Fewer lost steps than these limits are normal while a scale is found.
constexpr std::size_t kFewSteps = 3;
constexpr double kFewShare = 0.01;

/// Returns how many steps were skipped or spoiled by the scale, not by NaN in the model.
std::size_t lost_by_scale(const Trace& trace) {
  const auto model = static_cast<std::size_t>(trace.model_nan_skips + trace.model_nan_applied);
  const std::size_t lost = trace.skipped.size() + trace.applied_nonfinite.size();
  return lost - std::min(model, lost);
}

/// Returns lost_by_scale() plus the number of steps for which it is unknown.
std::size_t at_most(const Trace& trace) { return lost_by_scale(trace) + trace.unknown.size(); }

double flushed(const Trace& trace) { return trace.mean_flushed ? trace.mean_flushed->second : 0; }

/// Settings that would have lost fewer steps, without flushing noticeably more.
struct Better {
  std::string name;
  const Trace* trace = nullptr;
};

Better better_than(const PolicyStudy& study, const Trace& run, double negligible) {
  Better best;
  const auto offer = [&](const std::string& name, const Trace& trace) {
    if (trace.error || flushed(trace) > flushed(run) + negligible) return;
    const Trace& known = best.trace ? *best.trace : run;
    if (lost_by_scale(trace) >= lost_by_scale(known) || at_most(trace) > at_most(run)) return;
    best = {name, &trace};
  };
  if (study.tuned) offer(study.tuned->text, study.tuned->trace);
  if (study.fixed) offer("A static scale of " + scales_text(*study.fixed), *study.fixed);
  return best;
}

/// Returns "none", "12" or "0 to 41".
std::string lost_text_of(const Trace& trace) {
  const std::size_t low = lost_by_scale(trace), high = at_most(trace);
  if (high == 0) return "none";
  return low == high ? count_text(low) : fmt::format("{} to {}", count_text(low), count_text(high));
}

void lost_needlessly(const PolicyStudy& study, const Trace& run,
                     const underflow::RecommendOptions& asked, List& to) {
  const Better better = better_than(study, run, asked.negligible_share);
  if (better.trace == nullptr) return;
  const std::size_t lost = lost_by_scale(run), kept = lost - lost_by_scale(*better.trace);
  const std::size_t surely = lost - std::min(lost, at_most(*better.trace));
  const auto length = static_cast<double>(run.length);
  if (kept < kFewSteps || static_cast<double>(kept) < kFewShare * length) return;
  const bool serious =
      static_cast<double>(surely) >= asked.serious_share * length && surely > 2 * kFewSteps;
  to.push_back(
      {serious ? Severity::serious : Severity::warning,
       fmt::format("The run lost {} of {} to overflow by the loss scale, {}{} of them needlessly.",
                   count_text(lost), plural(run.length, "step"), surely == kept ? "" : "perhaps ",
                   count_text(kept)),
       fmt::format("{} would have lost {}{}.{}", better.name, lost_text_of(*better.trace),
                   better.trace->mean_flushed
                       ? ", and flushed " +
                             share_range_text(better.trace->mean_flushed->first,
                                              better.trace->mean_flushed->second) +
                             " of the gradient values"
                       : "",
                   surely == kept ? "" : " The log does not show which scale these steps need."),
       Evidence::policies});
}

/// Returns the number of consecutive skipped steps at the end of the run.
std::size_t skipped_at_end(const Trace& run, const StepSeries& series) {
  std::size_t n = 0;
  while (n < run.skipped.size() &&
         run.skipped[run.skipped.size() - 1 - n] == series.steps[series.steps.size() - 1 - n]) {
    ++n;
  }
  return n;
}

/// Returns a sentence on a scale that collapsed or became infinite; empty for other runs.
std::string astray(const Trace& run, const StepSeries& series) {
  constexpr std::size_t kMany = 10;
  // smaller scales flush gradients that are normal numbers at scale 1
  constexpr double kUseless = 0x1p-14;
  if (run.outcome == replay::TraceOutcome::zero) return "The run's loss scale collapsed to 0.";
  if (run.outcome == replay::TraceOutcome::infinity) {
    return "The run's loss scale grew to infinity, where it stays.";
  }
  const std::size_t skipped = skipped_at_end(run, series);
  const std::string scale = scale_text(run.final_scale);
  if (skipped >= kMany) {
    return fmt::format("The run skipped every one of its last {}, down to a loss scale of {}.",
                       plural(skipped, "step"), scale);
  }
  // A scale that never changed and lost nothing was chosen by the user.
  const bool moved = !run.scale.empty() && run.scale.front().second > run.final_scale;
  if (moved && !run.skipped.empty() && run.final_scale < kUseless) {
    return "The run's loss scale collapsed to " + scale + ".";
  }
  return "";
}

void collapsed(const Trace& run, const StepSeries& series, List& to) {
  const std::string where = astray(run, series);
  if (where.empty()) return;
  const bool model = run.model_nan_skips * 2 > run.skipped.size();
  to.push_back({Severity::serious, where,
                model ? "NaN or infinity is in the model itself: no loss scale cures it."
                      : "No step can be taken from there: start again at a smaller scale, with a "
                        "floor that the gradients can be scaled by.",
                Evidence::policies});
}

/// Adds a pitfall that occurred in the run itself. Pitfalls of other policies are advice.
void sprung(const replay::Pitfall& pitfall, List& to) {
  to.push_back({Severity::warning, log::printable(pitfall.what), log::printable(pitfall.rest),
                Evidence::policies});
}

constexpr std::size_t kMostOfALog = 4;

bool starts_slowly(const Study& study) {
  const auto slow = [](const scale_history::TimelineFacts& facts) {
    return facts.slow_start.has_value();
  };
  return std::ranges::any_of(study.timelines, slow) ||
         std::ranges::any_of(study.run_timelines, slow);
}

}  // namespace

void policies(const Study& study, List& to) {
  const bool ended = study.ends_broken();
  const bool said = ended || starts_slowly(study);  // alarms() says what was lost
  for (const PolicyStudy& replayed : study.policies) {
    const std::size_t before = to.size();
    if (replayed.recorded) {
      if (!ended || study.policies.size() > 1) collapsed(*replayed.recorded, replayed.series, to);
      if (!said) lost_needlessly(replayed, *replayed.recorded, study.advice.asked, to);
    }
    const bool told = ended || to.size() != before;
    for (const replay::Pitfall& pitfall : replayed.pitfalls) {
      if (pitfall.policy != "recorded" ||
          (told && pitfall.kind == replay::PitfallKind::nan_in_model))
        continue;
      if (to.size() - before < kMostOfALog) sprung(pitfall, to);
    }
  }
}

}  // namespace halfscope::reports::answer::found
