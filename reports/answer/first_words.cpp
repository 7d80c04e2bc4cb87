// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/first_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "reports/answer/adam_words.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {
namespace {

using analyzers::overflow::BrokenEnd;
using analyzers::scale_history::TimelineFacts;

AlarmWords static_words(const TimelineFacts& facts) {
  const analyzers::frames::SkippedSteps& skips = *facts.in_vain;
  const std::string scale = scale_name(*facts.scale_last);
  const std::int64_t last = skips.last.value_or(facts.last_attempt);  // a run log records each step
  AlarmWords words;
  words.lasts = true;
  words.what = facts.all_in_vain()
                   ? fmt::format("Every step from {} to {} was skipped, all {}, at loss scale {}.",
                                 skips.first, last, count_text(skips.count), scale)
                   : fmt::format("{} of the steps {} to {} were skipped, at loss scale {}.",
                                 count_text(skips.count), skips.first, last, scale);
  words.action =
      "The scale never changed, and a smaller one may help: run again with a dynamic loss scale, "
      "which falls until steps are applied.";
  return words;
}

/// Returns the alarms in the scalars of one run log.
std::vector<AlarmWords> run_log_words(const TimelineFacts& facts) {
  if (facts.skips_at_static_scale() && facts.nonfinite.empty()) return {static_words(facts)};
  std::vector<AlarmWords> words = alarm_words(facts);
  if (facts.schedule_ahead > 0)
    words.push_back(schedule_words(facts, analyzers::frames::Tool::other));
  if (const auto collapse = collapse_words(facts))
    words.push_back({collapse->what, collapse->action, true});
  return words;
}

std::string_view values_of(const BrokenEnd& end) {
  if (!end.inf) return "NaN";
  return end.nan ? "NaN or infinities" : "infinities";
}

std::string where_text(const BrokenEnd& end) {
  if (end.source.empty()) {
    return "look for the first NaN or infinity in the model, the data or the learning rate.";
  }
  return fmt::format(
      "{} is the first with finite inputs and NaN or infinite outputs, at step {}. Look there: at "
      "its inputs, its weights and the precision that it computes in.",
      code(end.source), end.first);
}

AlarmWords end_words(const BrokenEnd& end) {
  const std::string tensors = end.other_tensors == 0
                                  ? code(end.tensor) + " holds"
                                  : fmt::format("{} and {} hold", code(end.tensor),
                                                plural(end.other_tensors, "other tensor"));
  const std::string when = end.steps == 1
                               ? fmt::format("at the last recorded step, {}", end.last)
                               : fmt::format("from step {} to the last, {}, at {} recorded steps",
                                             end.first, end.last, count_text(end.steps));
  return {fmt::format("{} {} {}.", tensors, values_of(end), when),
          "No loss scale in the log explains this: " + where_text(end), true};
}

}  // namespace

std::vector<AlarmWords> first_words(const analyzers::Findings& found) {
  std::vector<AlarmWords> all = adam_alarms(found);
  std::ranges::move(alarm_words(found), std::back_inserter(all));
  const auto add = [&](const std::string& log, AlarmWords words) {
    // Adam's division by 0 explains the NaN, so another cause is not suggested.
    if (words.lasts && found.adam_divides_by_zero(log)) words.action.clear();
    if (found.analysis.logs.size() > 1) words.what = code(log) + ": " + words.what;
    all.push_back(std::move(words));
  };
  for (const TimelineFacts& facts : found.run_timelines) {
    for (AlarmWords& words : run_log_words(facts)) add(facts.log, std::move(words));
  }
  for (const BrokenEnd& end : found.broken_ends) add(end.log, end_words(end));
  return all;
}

std::string first_text(const analyzers::Findings& found) {
  std::string out;
  for (const AlarmWords& words : first_words(found)) {
    out += plain(words.what + (words.action.empty() ? "" : " ") + words.action) + "\n";
  }
  for (const CollapseWords& collapse : collapse_words(found)) {
    const std::string rest = collapse.rest();
    out += collapse.what + (rest.empty() ? "" : " ") + rest + "\n";
  }
  return out;
}

bool broken(const analyzers::Study& study) {
  const analyzers::recommend::Recommendation& r = study.advice;
  return r.nan_in_model || !r.overflow_without_cure.empty() || study.ends_broken();
}

}  // namespace halfscope::reports::answer
