// SPDX-License-Identifier: Apache-2.0
// What a log's scalars and skipped steps show to be wrong: the first sentences of an answer.
#include <fmt/format.h>

#include "analyzers/timeline_facts.hpp"
#include "halfscope/log/error.hpp"
#include "reports/text.hpp"
#include "reports/timeline_words.hpp"

namespace halfscope::reports {
namespace {

using analyzers::Nonfinite;
using analyzers::Quantity;
using analyzers::TimelineFacts;

std::string_view subject_of(Quantity quantity) {
  return quantity == Quantity::loss ? "The loss" : "The gradient norm";
}

std::string where_text(const Nonfinite& found, const TimelineFacts& facts) {
  const std::string_view one = facts.numbered ? "entry" : "step";
  const std::string_view both = facts.numbered ? "entries" : "steps";
  if (found.first == found.last) return fmt::format("at {} {}", one, found.first);
  return fmt::format("from {} {} to {}", one, found.first, found.last) +
         fmt::format(", at {} printed {}", count_text(found.count), both);
}

std::string nonfinite_text(const Nonfinite& found, const TimelineFacts& facts) {
  if (found.of == Quantity::nan_iterations) {
    return fmt::format("{} had NaN, printed {} {}.", plural(found.count, "iteration"),
                       found.first == found.last ? "at step" : "between steps",
                       found.first == found.last
                           ? std::to_string(found.first)
                           : fmt::format("{} and {}", found.first, found.last));
  }
  std::string out =
      fmt::format("{} is NaN or infinite {}", subject_of(found.of), where_text(found, facts));
  if (found.at_skips > 0) {
    out += fmt::format("; {} of these were skipped", count_text(found.at_skips));
  }
  return out + ".";
}

std::string in_vain_text(const TimelineFacts& facts) {
  const analyzers::SkippedInVain& skips = *facts.in_vain;
  const std::string scale =
      facts.scale_last ? fmt::format(", the last at loss scale {}", scale_name(*facts.scale_last))
                       : "";
  if (!skips.all) {
    return fmt::format("{} of the steps {} to {} were skipped{}: a lower scale did not help.",
                       count_text(skips.skipped), skips.first, skips.last, scale);
  }
  return fmt::format(
      "Every step from {} to {} was skipped{}: no update was applied {}, whatever the loss does.",
      skips.first, skips.last, scale,
      skips.first > 1 ? fmt::format("after step {}", skips.first - 1) : "in this log");
}

std::string_view action_of(const TimelineFacts& facts) {
  if (facts.in_vain || facts.ended_at_minimum) {
    return "The gradients hold NaN or infinities that no loss scale cures: go back to a checkpoint "
           "from before, and look for them in the model, the data or the learning rate.";
  }
  if (facts.state == analyzers::RunState::broken) {
    return "This lasts to the end of the log, and no loss scale cures it: look for the first NaN "
           "or "
           "infinity in the model, the data or the learning rate.";
  }
  return "Later ones are finite: a dynamic loss scale skips such a step, without one the update "
         "was "
         "applied.";
}

AlarmWords words_of(const TimelineFacts& facts, bool name_log) {
  AlarmWords words;
  if (name_log) words.what = log::printable(facts.log) + ": ";
  const std::size_t begin = words.what.size();
  const auto add = [&](const std::string& sentence) {
    words.what += (words.what.size() == begin ? "" : " ") + sentence;
  };
  if (facts.in_vain) add(in_vain_text(facts));
  if (facts.ended_at_minimum) {
    add("The run ended because its loss scale was at the minimum and gradients still overflowed.");
  }
  for (const Nonfinite& found : facts.nonfinite) {
    if (found.at_skips < found.count) add(nonfinite_text(found, facts));
  }
  words.lasts = facts.state == analyzers::RunState::broken;
  words.action = std::string(action_of(facts));
  return words;
}

}  // namespace

std::vector<AlarmWords> alarm_words(const analyzers::Analysis& analysis) {
  std::vector<AlarmWords> all;
  for (const TimelineFacts& facts : analyzers::timeline_facts(analysis)) {
    if (facts.alarming()) all.push_back(words_of(facts, analysis.logs.size() > 1));
  }
  return all;
}

std::string alarm_text(const analyzers::Analysis& analysis) {
  std::string out;
  for (const AlarmWords& words : alarm_words(analysis)) {
    out += words.what + " " + words.action + "\n";
  }
  return out;
}

}  // namespace halfscope::reports
