// SPDX-License-Identifier: Apache-2.0
#include "reports/policy_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/snippets.hpp"
#include "reports/text.hpp"

namespace halfscope::reports {

using namespace analyzers;

namespace {

std::string any_scale_text(double scale) {
  if (std::isnan(scale)) return "NaN";
  if (std::isinf(scale)) return "infinity";
  return scale == 0 ? "0" : scale_text(scale);
}

/// In a table: a power alone, without its digits.
std::string short_scale(double scale) {
  const auto log2 = scale > 0 && std::isfinite(scale) ? exact_log2(scale) : std::nullopt;
  if (log2) return *log2 == 0 ? "1" : fmt::format("2^{}", *log2);
  return scale > 0 && std::isfinite(scale) ? fmt::format("{:.5g}", scale) : any_scale_text(scale);
}

std::string flushed_sentence(const Trace& trace) {
  if (!trace.mean_flushed) return "";
  const auto [low, high] = *trace.mean_flushed;
  return fmt::format(", {} of gradients flushed", share_range_text(low, high));
}

}  // namespace

std::string trace_name(const Trace& trace) { return policy::short_text_of(trace.policy); }

std::string lost_text(const Trace& trace) { return share_text(trace.lost_share()); }

std::string skipped_text(const Trace& trace) {
  const std::size_t sure = trace.skipped.size(), perhaps = trace.unknown.size();
  std::string text = perhaps == 0
                         ? count_text(sure)
                         : fmt::format("{} to {}", count_text(sure), count_text(sure + perhaps));
  if (!trace.applied_nonfinite.empty()) {
    text += fmt::format(" + {} spoiled", count_text(trace.applied_nonfinite.size()));
  }
  return text;
}

std::string flushed_text(const std::optional<std::pair<double, double>>& share) {
  return share ? share_range_text(share->first, share->second) : "-";
}

std::string scales_text(const Trace& trace) {
  if (trace.scale.empty()) return "-";
  const auto [low, high] =
      std::minmax_element(trace.scale.begin(), trace.scale.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; });
  if (low->second == high->second) return short_scale(low->second);
  return short_scale(low->second) + " to " + short_scale(high->second);
}

std::string end_text(const Trace& trace, const StepSeries& series) {
  switch (trace.fate) {
    case Fate::ran: break;
    case Fate::error: return fmt::format("dies at {}", trace.error ? trace.error->step : 0);
    case Fate::floor: return short_scale(trace.final_scale) + ", its floor";
    case Fate::zero: return "0: collapsed";
    case Fate::infinity: return "infinite: stuck";
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

std::string steps_sentence(const Trace& trace) {
  return fmt::format("{} of {} steps skipped", skipped_text(trace), count_text(trace.length));
}

std::string skipped_sentence(const Trace& trace) {
  std::string out = steps_sentence(trace);
  if (trace.model_nan_skips != 0) {
    out += fmt::format(
        " ({} for NaN or infinity in the model, which no scale cures)",
        trace.model_nan_skips == trace.skipped.size() ? "all" : count_text(trace.model_nan_skips));
  }
  return out + flushed_sentence(trace);
}

}  // namespace

std::string run_text(const PolicyStudy& study) {
  if (!study.recorded) return "";
  const Trace& run = *study.recorded;
  std::string out =
      fmt::format("The run itself: {}, loss scale {}", skipped_sentence(run), scales_text(run));
  if (run.fate != Fate::ran) out += ", " + end_text(run, study.series) + " in the end";
  return out + ".\n" + check_text(study);
}

std::string check_text(const PolicyStudy& study) {
  if (!study.check) return "";
  const RunCheck& check = *study.check;
  if (!check.first_difference) {
    return fmt::format("Its policy replayed ({}) gives the same scale and skips at all {}.\n",
                       check.text, plural(check.steps, "step"));
  }
  const Difference& d = *check.first_difference;
  return fmt::format(
      "Its policy replayed ({}) parts from the run at step {}: replayed {}{}, recorded {}{}.\n",
      check.text, d.step, any_scale_text(d.replayed_scale), d.replayed_skip ? ", skipped" : "",
      any_scale_text(d.recorded_scale), d.recorded_skip ? ", skipped" : "");
}

std::string tuned_text(const TunedPolicy& tuned, double target_underflow) {
  const std::string line = policy_line(tuned.trace.policy);
  std::string out =
      fmt::format("Of {} dynamic settings of {}, ", count_text(tuned.tried), tuned.name);
  out +=
      tuned.kept ? "none does better on these steps than those it has: " : "best on these steps: ";
  out += steps_sentence(tuned.trace) + flushed_sentence(tuned.trace) + ".\n";
  if (tuned.trace.mean_flushed && !tuned.within_target) {
    const double percent = 100 * target_underflow;
    out +=
        tuned.trace.mean_flushed->first > target_underflow
            ? fmt::format("No setting keeps the flushed share at the target of {:.3g} %. ", percent)
            : fmt::format(
                  "Whether that keeps the flushed share at the target of {:.3g} % is not "
                  "known: the log tells it within these bounds. ",
                  percent);
  }
  out += tuned.stopped_by;
  if (out.ends_with(' ')) out.pop_back();
  if (!out.ends_with('\n')) out += '\n';
  return out + "\n  " + (line.empty() ? tuned.text : line) + "\n\n";
}

std::string fixed_text(const PolicyStudy& study) {
  if (!study.fixed) return "";
  return fmt::format("A static scale of {}: {}.\n", any_scale_text(study.fixed->scale_at(0)),
                     skipped_sentence(*study.fixed));
}

std::vector<std::pair<std::string, std::string>> traps_text(const PolicyStudy& study) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const Trap& trap : study.traps) {
    const std::string name = trap.policy != "recorded"      ? trap.policy
                             : study.series.from_magnitudes ? "this series"
                                                            : "the run itself";
    const auto same = std::find_if(out.begin(), out.end(),
                                   [&](const auto& known) { return known.second == trap.text; });
    if (same == out.end()) {
      out.emplace_back(name, trap.text);
    } else if ((", " + same->first + ",").find(", " + name + ",") == std::string::npos) {
      same->first += ", " + name;
    }
  }
  return out;
}

}  // namespace halfscope::reports
