// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzers/scale_history/timeline_facts.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/table/boundary.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/timeline.hpp"

namespace halfscope::reports::answer {

using analyzers::frames::SkippedSteps;
using analyzers::scale_history::RunState;
using analyzers::scale_history::ScaleDriver;
using analyzers::scale_history::ScaleFall;
using analyzers::scale_history::TimelineFacts;

namespace {

constexpr std::size_t kStepsShown = 8;
constexpr std::size_t kRangesShown = 5;
constexpr std::string_view kUseless =
    "A scale of 1 or less scales nothing, so the scale is not the cause: look for NaN or "
    "infinities in the model, the data or the learning rate.";
constexpr std::string_view kGrown =
    "Either the gradients grew as far as it fell, or NaN and infinities took it down: look for the "
    "cause in the model, the data or the learning rate.";

/// Returns that no step was skipped, or that falls of the scale contradict that.
std::string no_skips_text(const TimelineFacts& facts) {
  const auto falls = std::ranges::count_if(
      facts.changes, [](const auto& change) { return change.to < change.from; });
  if (facts.counted_from) return "No step was skipped, by the log's counter.";
  if (falls == 0) return "The log shows no skipped step.";
  const std::string fell = falls == 1 ? "once" : fmt::format("{} times", falls);
  if (facts.skips_told) {
    return fmt::format(
        "The log tells of no skipped step, although the scale fell {}: updates that hold "
        "infinities may have been applied.",
        fell);
  }
  return fmt::format(
      "The log does not say which steps were skipped. The scale fell {}; a dynamic scale falls "
      "after each skipped step.",
      fell);
}

std::string steps_text(const Interval& steps) {
  return count_text(steps) + (steps.high == 1 ? " step" : " steps");
}

/// Returns how many processes print each message; empty if only one does.
std::string ranks_text(const TimelineFacts& facts) {
  const analyzers::frames::PrintingRanks& ranks = facts.ranks;
  if (ranks.ranks == 1) return "";
  if (ranks.asked) return fmt::format(" Each message counts as printed by {} ranks.", ranks.ranks);
  return fmt::format(
      " Each message appears {} times in a row: {} ranks are {} to print each.{}", ranks.ranks,
      ranks.ranks, ranks.certain ? "taken" : "assumed",
      ranks.certain
          ? ""
          : " The runs are few, uneven or of one scale, which one process prints as well: "
            "--ranks N gives the number.");
}

/// Returns the place of steps at the end of the log that have no number: after the last number.
std::string open_text(std::string_view one, std::int64_t first) {
  return first > 1 ? fmt::format("after {} {}", one, first - 1)
                   : fmt::format("from {} {} on", one, first);
}

std::string skipped_text(const TimelineFacts& facts) {
  if (!facts.scale_first && !facts.skips_told) {
    return facts.alarming() ? "The log reports no loss scale and no skipped step." : "";
  }
  if (facts.skipped_in_all.high == 0) return no_skips_text(facts);
  std::string out =
      (facts.skips_at_least ? "At least " : "") + steps_text(facts.skipped_in_all) + " skipped";
  if (facts.numbered) {
    return out + "; the log does not say which: entries are numbered from 0." + ranks_text(facts);
  }
  for (std::size_t i = 0; i < std::min(kStepsShown, facts.skipped.size()); ++i) {
    out += fmt::format("{}{}", i == 0 ? ": " : ", ", facts.skipped[i]);
  }
  if (facts.skipped.size() > kStepsShown) {
    out += fmt::format(" and {} more up to {}", facts.skipped.size() - kStepsShown,
                       facts.skipped.back());
  }
  for (std::size_t i = 0; i < std::min(kRangesShown, facts.ranges.size()); ++i) {
    const SkippedSteps& range = facts.ranges[i];
    out += i == 0 && facts.skipped.empty() ? ": " : "; ";
    const std::string count = count_text(range.count);
    out += range.last ? fmt::format("{} of steps {} to {}", count, range.first, *range.last)
                      : fmt::format("{} {}", count, open_text("step", range.first));
  }
  if (facts.ranges.size() > kRangesShown) {
    out += fmt::format("; and so on, {} such ranges", facts.ranges.size());
  }
  return out + "." + ranks_text(facts);
}

std::string scales_text(const TimelineFacts& facts) {
  if (facts.changes.empty()) return "Loss scale: " + scale_name(*facts.scale_first) + ".";
  const std::int64_t step = facts.scale_first_step.value_or(0);
  const bool later = !facts.numbered && facts.first && step > *facts.first;
  return fmt::format("Loss scale: {} at {}, {} at last, between {} and {}; {}.",
                     scale_name(*facts.scale_first), later ? fmt::format("step {}", step) : "first",
                     scale_name(*facts.scale_last), scale_name(*facts.scale_least),
                     scale_name(*facts.scale_most), plural(facts.changes.size(), "change"));
}

std::string driver_text(const ScaleDriver& driver) {
  const std::string name = log::printable(driver.tensor);
  const std::string at = fmt::format("at step {}", driver.step);
  std::string out;
  if (!std::isfinite(driver.max_abs)) {
    out = fmt::format("{} is the first tensor with infinities or NaN, {}", name, at);
    if (driver.also > 0) {
      out += fmt::format(", with {}", plural(driver.also, "other tensor"));
    }
  } else {
    const bool over = driver.max_abs * driver.scale >= to_double(boundaries(kBinary16).overflow);
    out = fmt::format("{} came closest to overflow, with {} {}: times that step's scale, {}, it {}",
                      name, magnitude_text(driver.max_abs), at, scale_name(driver.scale),
                      over ? "overflows"
                      : driver.nonfinite_known
                          ? "does not overflow"
                          : "does not overflow, and values that did are not in the log");
  }
  return out + (driver.before ? ", the last step recorded before" : "");
}

std::string fall_text(const ScaleFall& fall, const TimelineFacts& facts, std::string_view opening) {
  const std::string_view one = facts.numbered ? "entry" : "step";
  const std::string_view both = facts.numbered ? "entries" : "steps";
  std::string out =
      fmt::format("{} from {} to {} ", opening, scale_name(fall.from), scale_name(fall.to));
  out += fall.by ? fmt::format("between {} {} and {}", both, fall.after, *fall.by)
                 : open_text(one, fall.after);
  return out + ".";
}

/// Returns that the loss was NaN or infinite while the scale fell. Empty if it was not.
std::string loss_text(const ScaleFall& fall, const TimelineFacts& facts) {
  using analyzers::scale_history::Quantity;
  if (facts.numbered) return "";
  for (const analyzers::scale_history::Nonfinite& found : facts.nonfinite) {
    const bool within = fall.after <= found.last && found.first <= fall.by.value_or(found.first);
    if (found.of != Quantity::loss || !within) continue;
    return fmt::format("The loss is NaN or infinite from step {} {}.", found.first,
                       found.since == found.first ? "on" : fmt::format("to {}", found.last));
  }
  return "";
}

/// Returns why the scale fell. Empty if another sentence says it: after a collapse, a restart of
/// the scaler, a start that is too high, or NaN to the end of the log.
std::string drove_text(const ScaleFall& fall, const TimelineFacts& facts) {
  if (fall.driver) return driver_text(*fall.driver) + ".";
  if (std::string text = loss_text(fall, facts); !text.empty()) return text;
  if (&fall == facts.collapse() || fall.before_reset) return "";
  if (fall.to > 1 && facts.at_start(fall)) {
    return facts.state == RunState::slow_start ? "" : "It starts too high.";
  }
  if (facts.state == RunState::broken && !fall.over) return "";
  return facts.magnitudes ? "The cause is unknown: no tensor's magnitudes are recorded there."
                          : "The cause is unknown: the log has no per-tensor magnitudes.";
}

std::string joined(const std::string& first, const std::string& second) {
  return first + (first.empty() || second.empty() ? "" : " ") + second;
}

Section section_of(const TimelineFacts& facts) {
  Section section{fmt::format("Loss scale and skipped steps of {} ({})", log::printable(facts.log),
                              log::printable(fmt::format("{}", fmt::join(facts.kinds, ", "))))};
  if (facts.first && !facts.numbered) {
    section.title += fmt::format(", steps {} to {}", *facts.first, *facts.last);
  }
  const auto add = [&](std::string sentence) {
    if (!sentence.empty()) section.sentences.push_back(std::move(sentence));
  };
  add(skipped_text(facts));
  if (facts.scale_first) add(scales_text(facts));
  for (const ScaleFall& fall : facts.falls) {
    add(joined(fall_text(fall, facts, "The scale fell"), drove_text(fall, facts)));
  }
  for (const std::string& remark : facts.remarks) add("How lines were read: " + remark + ".");
  return section;
}

}  // namespace

std::string halvings_text(const TimelineFacts& facts) {
  const Interval& skipped = facts.halvings;
  return fmt::format("{} of the steps {} to {} ({}) were skipped{}", count_text(skipped),
                     facts.first_attempt, facts.last_attempt,
                     share_text(skipped, facts.attempts.value_or(0)),
                     facts.window_taken ? fmt::format(", if the scale doubles after {} clean steps "
                                                      "or more",
                                                      *facts.window_taken)
                                        : "");
}

std::string share_of_steps(const TimelineFacts& facts) {
  if (!facts.skips_told) {
    const std::string times =
        facts.halvings.low == 1 ? "once" : fmt::format("{} times", facts.halvings.low);
    const bool all_told = facts.halvings.exact();
    if (all_told || !facts.attempts) return "the loss scale was halved " + times;
    return fmt::format(
        "the loss scale was halved {}, and the lines are too far apart to show more: {}", times,
        halvings_text(facts));
  }
  const std::string count =
      (facts.skips_at_least ? "at least " : "") + count_text(facts.skipped_in_all);
  const std::string_view were = facts.skipped_in_all.high == 1 ? "was" : "were";
  if (!facts.attempts)
    return fmt::format("{} {} {} skipped", count, facts.skipped_in_all.high == 1 ? "step" : "steps",
                       were);
  return fmt::format("{} of the steps {} to {} ({}) {} skipped", count, facts.first_attempt,
                     facts.last_attempt, share_text(facts.skipped_in_all, *facts.attempts), were);
}

std::string scale_name(double scale) {
  return scale > 0 && std::isfinite(scale) ? scale_text(scale) : fmt::format("{}", scale);
}

std::optional<Finding> collapse_finding(const TimelineFacts& facts, bool with_cause) {
  const ScaleFall* const fall = facts.collapse();
  if (fall == nullptr) return std::nullopt;
  const std::string opening =
      facts.other_scalers.empty()
          ? "The loss scale collapsed"
          : fmt::format("The loss scale of scaler {} collapsed", facts.scaler);
  std::string action;
  if (facts.state != RunState::broken) action = fall->to <= 1 ? kUseless : kGrown;
  return Finding{Severity::breaks, fall_text(*fall, facts, opening),
                 with_cause ? joined(drove_text(*fall, facts), action) : action};
}

std::vector<Section> timeline_sections(const analyzers::Findings& found) {
  std::vector<Section> all;
  for (const TimelineFacts& facts : found.timelines) {
    Section section = section_of(facts);
    if (!section.sentences.empty()) all.push_back(std::move(section));
  }
  return all;
}

}  // namespace halfscope::reports::answer
