// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/policy_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/answer/no_scale.hpp"
#include "reports/answer/policy_names.hpp"
#include "reports/answer/policy_paste.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using namespace analyzers;

using analyzers::replay::PolicyStudy;
using analyzers::replay::Trace;
using analyzers::replay::TraceOutcome;
using analyzers::replay::TunedPolicy;

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

}  // namespace

std::string step_text(std::int64_t step) {
  return step < 0 ? fmt::format("{}", step) : count_text(static_cast<std::uint64_t>(step));
}

std::string trace_name(const Trace& trace) { return policy::short_text_of(trace.policy); }

std::string lost_text(const Trace& trace, const replay::StepSeries& series, RangeText range) {
  const auto [low, high] = trace.lost();
  const bool flushed_unknown = !series.flushed.empty() && !trace.mean_flushed;
  return flushed_unknown && high < 1 ? "at least " + share_text(low) : range(low, high);
}

std::string skips_text(const Trace& trace) {
  const std::size_t sure = trace.skipped.size(), perhaps = trace.unknown.size();
  return perhaps == 0 ? count_text(sure)
                      : fmt::format("{} to {}", count_text(sure), count_text(sure + perhaps));
}

std::string skipped_text(const Trace& trace) {
  std::string text = skips_text(trace);
  if (!trace.applied_nonfinite.empty()) {
    text += fmt::format(" + {} spoiled", count_text(trace.applied_nonfinite.size()));
  }
  return text;
}

std::string flushed_text(const std::optional<std::pair<double, double>>& share, RangeText range) {
  return share ? range(share->first, share->second) : "-";
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

namespace {

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

std::string run_text(const PolicyStudy& study) {
  std::string out =
      study.series.in_bfloat16
          ? "The run computed in BF16, which needs no loss scale. The numbers below are for FP16.\n"
          : "";
  if (!study.recorded) return out;
  const Trace& run = *study.recorded;
  out += fmt::format("The run itself: {}, loss scale {}", losses_sentence(run), scales_text(run));
  if (run.outcome != TraceOutcome::ran) out += ", " + end_text(run, study.series) + " in the end";
  const std::string flushed = study.series.in_bfloat16 ? "" : run_flushed_sentence(run);
  return out + flushed + ".\n" + check_text(study);
}

}  // namespace

std::string check_text(const PolicyStudy& study) {
  if (!study.check) return "";
  const replay::RunCheck& check = *study.check;
  const std::string name = short_form(check.text);
  if (!check.first_difference) {
    return fmt::format(
        "Replaying the run's own policy ({}) gives the same scales and skips at all {}.\n", name,
        plural(check.steps, "step"));
  }
  const replay::Difference& d = *check.first_difference;
  return fmt::format(
      "Replaying the run's own policy ({}) first differs from the log at step {}: replayed {}{}, "
      "recorded {}{}.\n",
      name, step_text(d.step), any_scale_text(d.replayed_scale), d.replayed_skip ? ", skipped" : "",
      any_scale_text(d.recorded_scale), d.recorded_skip ? ", skipped" : "");
}

std::string not_tuned_text(const PolicyStudy& study, std::string_view asked) {
  if (!gives_settings(study)) {
    return "No settings are given, static or dynamic: no loss scale helps this run.\n";
  }
  const std::string why = asked.empty() ? "" : why_not_tunable(policy_called(asked));
  if (!why.empty()) {
    return fmt::format("No dynamic settings are searched for {}: {}.\n", policy_name_in(asked),
                       why);
  }
  if (study.series.steps.empty()) return "";
  if (study.series.from_scale) {
    return "No dynamic settings are searched, since the log has no gradients: halfscope recommend "
           "gives those that its own scale supports.\n";
  }
  return "No dynamic settings are searched: every gradient is zero, infinite or NaN, so no step "
         "shows which scale would hold it.\n";
}

namespace {

void add_lines(std::vector<AnswerLine>& to, std::string_view text,
               AnswerLine::Kind kind = AnswerLine::Kind::sentence) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    to.push_back({std::string(text.substr(0, end)), kind});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void add_paste(std::vector<AnswerLine>& to, const TunedPolicy& tuned, std::string_view asked) {
  const auto paste = paste_of(tuned.trace.policy, asked.empty() ? "" : policy_name_in(asked));
  to.push_back({paste ? fmt::format("For {}:", paste->where)
                      : "In Halfscope's notation (--policy), as there is no line of its framework "
                        "for these settings:",
                AnswerLine::Kind::label});
  to.push_back({""});
  add_lines(to, paste ? paste->lines : tuned.text, AnswerLine::Kind::paste);
  to.push_back({""});
  if (paste) add_lines(to, paste->note);
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

std::string tuned_text(const TunedPolicy& tuned, double target_underflow) {
  std::string out =
      fmt::format("{} dynamic settings of {} were replayed. ", count_text(tuned.tried), tuned.name);
  out += tuned.kept ? "None is worth a change from those it has: " : "Best on these steps: ";
  out += steps_sentence(tuned.trace) + flushed_sentence(tuned.trace) + ".\n";
  out += target_text(tuned, target_underflow);
  out += tuned.stopped_by;
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

}  // namespace

bool gives_settings(const PolicyStudy& study) {
  return study.advised.refused != replay::NoStatic::beyond;
}

std::string fixed_text(const PolicyStudy& study) {
  const auto& [log2, refused, at_most] = study.advised;
  const std::string scale = log2 ? short_scale(std::ldexp(1.0, *log2)) : "";
  if (refused) {
    switch (*refused) {
      case replay::NoStatic::unknown:
        return "No static scale can be recommended: nothing recorded bounds the gradients.\n";
      case replay::NoStatic::diverges:
        return fmt::format(
            "No static scale is recommended: the largest gradients need one of {} or less. "
            "Training diverges, which no loss scale cures.\n",
            scale);
      case replay::NoStatic::upper_bound:
        return fmt::format("No static scale is recommended: {}\n", upper_bound_text(scale));
      case replay::NoStatic::beyond: return "";  // not_tuned_text() says it
    }
  }
  if (!study.fixed) return "";
  return fmt::format("A static scale of {}{}: {}.\n", at_most ? "at most " : "",
                     any_scale_text(study.fixed->scale_at(0)),
                     losses_sentence(*study.fixed) + flushed_sentence(*study.fixed));
}

std::vector<AnswerLine> answer_lines(const PolicyStudy& study, std::string_view asked) {
  std::vector<AnswerLine> lines;
  add_lines(lines, run_text(study) + fixed_text(study));
  if (study.tuned && gives_settings(study)) {
    add_lines(lines, tuned_text(*study.tuned, study.target_underflow));
    add_paste(lines, *study.tuned, asked);
  } else {
    add_lines(lines, not_tuned_text(study, asked));
  }
  return lines;
}

std::vector<std::pair<std::string, const Trace*>> references(const PolicyStudy& study) {
  std::vector<std::pair<std::string, const Trace*>> out;
  if (study.recorded) out.emplace_back("the run itself", &*study.recorded);
  if (!gives_settings(study)) return out;
  if (study.fixed) out.emplace_back("recommended static scale", &*study.fixed);
  if (study.tuned) out.emplace_back("best found: " + study.tuned->text, &study.tuned->trace);
  return out;
}

std::string unknown_steps_text() {
  return "Two numbers of skipped steps: at the steps between them, the run overflowed at a larger "
         "scale, or not all gradients are recorded. It is unknown whether they overflow at "
         "this scale.";
}

}  // namespace halfscope::reports::answer
