// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/answer/policies.hpp"
#include "reports/answer/policy_paste.hpp"
#include "reports/answer/scale.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::replay::PolicyStudy;
using analyzers::replay::Trace;
using analyzers::replay::TraceOutcome;
using analyzers::replay::TunedPolicy;
using namespace analyzers;

namespace {

std::string any_scale_text(double scale) {
  if (std::isnan(scale)) return "NaN";
  if (std::isinf(scale)) return "infinity";
  return scale == 0 ? "0" : scale_text(scale);
}

/// Returns a scale for a table: a power of two without its digits.
std::string short_scale(double scale) {
  const auto log2 = scale > 0 && std::isfinite(scale) ? exact_log2(scale) : std::nullopt;
  if (log2) return *log2 == 0 ? "1" : fmt::format("2^{}", *log2);
  return scale > 0 && std::isfinite(scale) ? fmt::format("{:.5g}", scale) : any_scale_text(scale);
}

std::string flushed_sentence(const Trace& trace) {
  if (!trace.mean_flushed) return "";
  const auto [low, high] = *trace.mean_flushed;
  return fmt::format(", a mean of {} of gradients flushed", share_range_text(low, high));
}

/// Returns "policy,setting=value" without settings that are the framework's defaults.
std::string short_form(const std::string& text) {
  return policy::short_text_of(policy::make(text));
}

/// For example "3 to 5 of 100 steps skipped, 1 spoiled (NaN or infinity goes into the weights)".
std::string steps_sentence(const Trace& trace) {
  std::string out =
      fmt::format("{} of {} skipped", skips_text(trace), plural(trace.length, "step"));
  if (!trace.applied_nonfinite.empty()) {
    out += fmt::format(", {} spoiled (NaN or infinity goes into the weights)",
                       count_text(trace.applied_nonfinite.size()));
  }
  if (trace.error)
    out += fmt::format(", and training ends at step {}", step_text(trace.error->step));
  return out;
}

/// Returns steps_sentence() with the number of steps skipped for NaN in the model.
std::string losses_sentence(const Trace& trace) {
  std::string out = steps_sentence(trace);
  if (trace.model_nan_skips != 0) {
    const bool all = trace.unknown.empty() && trace.applied_nonfinite.empty() &&
                     trace.model_nan_skips == trace.skipped.size();
    out += fmt::format(" ({}for NaN or infinity in the model, which no scale cures)",
                       !all                        ? count_text(trace.model_nan_skips) + " "
                       : trace.skipped.size() == 1 ? ""
                                                   : "all ");
  }
  return out;
}

/// Returns what rounding to FP16 at the run's scales flushes. A run in FP32 itself flushed nothing.
std::string run_flushed_sentence(const Trace& run) {
  if (!run.mean_flushed) return "";
  const auto [low, high] = *run.mean_flushed;
  const bool one = run.scale.size() == 1;
  return fmt::format("; rounding at {} flushes a mean of {} of its gradients",
                     one ? "that scale" : "these scales", share_range_text(low, high));
}

/// Returns whether a replay of the run's own policy equals the run; empty without a replay.
std::string check_text(const PolicyStudy& study) {
  if (!study.check) return "";
  const replay::RunCheck& check = *study.check;
  const std::string name = short_form(check.text);
  if (!check.first_difference) {
    return fmt::format(
        "Replaying the run's own policy ({}) gives the same scales and skips at all {}.", name,
        plural(check.steps, "step"));
  }
  const replay::Difference& d = *check.first_difference;
  return fmt::format(
      "Replaying the run's own policy ({}) first differs from the log at step {}: replayed {}{}, "
      "recorded {}{}.",
      name, step_text(d.step), any_scale_text(d.replayed_scale), d.replayed_skip ? ", skipped" : "",
      any_scale_text(d.recorded_scale), d.recorded_skip ? ", skipped" : "");
}

std::string run_text(const PolicyStudy& study) {
  if (!study.recorded) return "";
  const Trace& run = *study.recorded;
  return fmt::format(
      "The run itself: {}, loss scale {}{}{}.", losses_sentence(run), scales_text(run),
      run.outcome != TraceOutcome::ran ? ", " + end_text(run, study.series) + " in the end" : "",
      study.series.in_bfloat16 ? "" : run_flushed_sentence(run));
}

PasteLines paste_lines(const TunedPolicy& tuned, std::string_view asked) {
  const auto paste = paste_of(tuned.trace.policy, asked.empty() ? "" : policy_name_in(asked));
  if (paste) return {fmt::format("For {}", paste->where), paste->lines, paste->note};
  return {
      "In Halfscope's notation (--policy), as there is no line of its framework for these "
      "settings",
      tuned.text};
}

/// Returns a sentence if the flushed share is above the target or may be. Empty otherwise.
std::string target_text(const TunedPolicy& tuned, double target) {
  if (!tuned.trace.mean_flushed || tuned.within_target) return "";
  const std::string percent = fmt::format("{:.3g} %", 100 * target);
  if (tuned.own_within_target) {
    const Trace& own = *tuned.own_within_target;
    const bool all_taken =
        own.skipped.empty() && own.unknown.empty() && own.applied_nonfinite.empty() && !own.error;
    return fmt::format(
        "No setting that was tried keeps the flushed share at the target of {}; those it has do, "
        "{}. ",
        percent,
        all_taken ? "from a scale that leaves too little headroom" : "with " + steps_sentence(own));
  }
  if (tuned.trace.mean_flushed->first > target) {
    return fmt::format("No setting keeps the flushed share at the target of {}. ", percent);
  }
  return fmt::format(
      "The log shows only bounds of the flushed share, so whether it meets the target of {} is "
      "unknown. ",
      percent);
}

std::string tuned_text(const TunedPolicy& tuned) {
  return fmt::format(
      "{} dynamic settings of {} were replayed. {}{}.", count_text(tuned.tried), tuned.name,
      tuned.kept ? "None is worth a change from those it has: " : "Best on these steps: ",
      steps_sentence(tuned.trace) + flushed_sentence(tuned.trace));
}

}  // namespace

std::string step_text(std::int64_t step) {
  return step < 0 ? fmt::format("{}", step) : count_text(static_cast<std::uint64_t>(step));
}

std::string trace_name(const Trace& trace) { return policy::short_text_of(trace.policy); }

std::string lost_text(const Trace& trace, const replay::StepSeries& series) {
  const auto [low, high] = trace.lost();
  const bool flushed_unknown = !series.flushed.empty() && !trace.mean_flushed;
  return flushed_unknown && high < 1 ? "at least " + share_text(low) : narrow_range_text(low, high);
}

std::string skips_text(const Trace& trace) {
  const std::size_t sure = trace.skipped.size();
  return count_text(Interval(sure, sure + trace.unknown.size()));
}

std::string skipped_text(const Trace& trace) {
  std::string text = skips_text(trace);
  if (!trace.applied_nonfinite.empty()) {
    text += fmt::format(" + {} spoiled", count_text(trace.applied_nonfinite.size()));
  }
  return text;
}

std::string scales_text(const Trace& trace) {
  if (trace.scale.empty()) return "-";
  const auto [low, high] =
      std::minmax_element(trace.scale.begin(), trace.scale.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  if (low->second == high->second) return short_scale(low->second);
  return short_scale(low->second) + " to " + short_scale(high->second);
}

std::string end_text(const Trace& trace, const replay::StepSeries& series) {
  switch (trace.outcome) {
    case TraceOutcome::ran: break;
    case TraceOutcome::error:
      return fmt::format("ends at step {}", trace.error ? step_text(trace.error->step) : "?");
    case TraceOutcome::floor: return short_scale(trace.final_scale) + ", its floor";
    case TraceOutcome::zero: return "0: collapsed";
    case TraceOutcome::infinity: return "infinite: stuck";
  }
  return series.steps.empty() ? "-" : short_scale(trace.final_scale);
}

std::string why_text(const Trace& trace) {
  const std::uint64_t model = std::min<std::uint64_t>(trace.model_nan_skips, trace.skipped.size());
  const std::uint64_t by_scale = trace.skipped.size() - model;
  std::string out;
  const auto tell = [&](bool is, const std::string& what) {
    if (is) out += (out.empty() ? "" : "; ") + what;
  };
  const auto counted = [&](std::uint64_t count) {
    return model == 0 || by_scale == 0 ? "" : count_text(count) + " ";
  };
  tell(by_scale != 0, counted(by_scale) + "overflow by the scale");
  tell(model != 0, counted(model) + "NaN or infinity in the model, which no scale cures");
  tell(!trace.applied_nonfinite.empty(), "NaN or infinity applied to the weights at " +
                                             plural(trace.applied_nonfinite.size(), "step"));
  tell(trace.error.has_value(), trace.error ? trace.error->message : "");
  return out;
}

std::string not_tuned_text(const PolicyStudy& study, std::string_view asked) {
  if (!gives_settings(study)) {
    return "No settings are given, static or dynamic: no loss scale helps this run.";
  }
  const std::string why = asked.empty() ? "" : why_not_tunable(policy_called(asked));
  if (!why.empty()) {
    return fmt::format("No dynamic settings are searched for {}: {}.", policy_name_in(asked), why);
  }
  if (study.series.steps.empty()) return "";
  if (study.series.from_scale) {
    return "No dynamic settings are searched, since the log has no gradients: halfscope recommend "
           "gives those that its own scale supports.";
  }
  return "No dynamic settings are searched: every gradient is zero, infinite or NaN, so no step "
         "shows which scale would hold it.";
}

bool gives_settings(const PolicyStudy& study) {
  return study.advised.refused != replay::NoStatic::beyond;
}

std::string fixed_text(const PolicyStudy& study) {
  const auto& [log2, refused, at_most] = study.advised;
  const std::string scale = log2 ? short_scale(std::ldexp(1.0, *log2)) : "";
  if (refused) {
    switch (*refused) {
      case replay::NoStatic::unknown:
        return "No static scale can be recommended: nothing recorded bounds the gradients.";
      case replay::NoStatic::diverges:
        return fmt::format(
            "No static scale is recommended: the largest gradients need one of {} or less. "
            "Training diverges, which no loss scale cures.",
            scale);
      case replay::NoStatic::upper_bound:
        return fmt::format("No static scale is recommended: {}", upper_bound_text(scale));
      case replay::NoStatic::beyond: return "";  // not_tuned_text() says it
    }
  }
  if (!study.fixed) return "";
  return fmt::format("A static scale of {}{}: {}.", at_most ? "at most " : "",
                     any_scale_text(study.fixed->scale_at(0)),
                     losses_sentence(*study.fixed) + flushed_sentence(*study.fixed));
}

Section replay_answer(const PolicyStudy& study, std::string_view asked) {
  Section answer;
  if (study.series.in_bfloat16) {
    answer.sentences.emplace_back(
        "The run computed in BF16, which needs no loss scale. The numbers below are for FP16.");
  }
  for (std::string text : {run_text(study), check_text(study), fixed_text(study)}) {
    answer.sentences.push_back(std::move(text));
  }
  if (study.tuned && gives_settings(study)) {
    std::string more = target_text(*study.tuned, study.target_underflow) + study.tuned->stopped_by;
    if (more.ends_with(' ')) more.pop_back();
    answer.sentences.insert(answer.sentences.end(), {tuned_text(*study.tuned), more});
    answer.pastes = {paste_lines(*study.tuned, asked)};
  } else {
    answer.sentences.push_back(not_tuned_text(study, asked));
  }
  std::erase(answer.sentences, "");
  return answer;
}

std::vector<std::pair<std::string, const Trace*>> references(const PolicyStudy& study) {
  std::vector<std::pair<std::string, const Trace*>> out;
  if (study.recorded) out.emplace_back("the run itself", &*study.recorded);
  if (!gives_settings(study)) return out;
  if (study.fixed) out.emplace_back("recommended static scale", &*study.fixed);
  if (study.tuned) out.emplace_back("best found: " + study.tuned->text, &study.tuned->trace);
  return out;
}

}  // namespace halfscope::reports::answer
