// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/first_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "analyzers/overflow/broken_end.hpp"
#include "analyzers/scale_history/run_log_facts.hpp"
#include "analyzers/scale_history/timeline_facts.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {
namespace {

using analyzers::overflow::BrokenEnd;
using analyzers::scale_history::TimelineFacts;
using analyzers::underflow::Analysis;

std::string place(const Analysis& analysis, const std::string& log) {
  return analysis.logs.size() > 1 ? log::printable(log) + ": " : "";
}

AlarmWords static_words(const TimelineFacts& facts) {
  const analyzers::scale_history::SkippedInVain& skips = *facts.in_vain;
  const std::string scale = scale_name(*facts.scale_last);
  AlarmWords words;
  words.lasts = true;
  words.what = skips.all
                   ? fmt::format("Every step from {} to {} was skipped, all {}, at loss scale {}.",
                                 skips.first, skips.last, count_text(skips.skipped), scale)
                   : fmt::format("{} of the steps {} to {} were skipped, at loss scale {}.",
                                 count_text(skips.skipped), skips.first, skips.last, scale);
  words.action =
      "The scale never changed, and a smaller one may help: record again with a dynamic loss "
      "scale, which falls until steps are applied.";
  return words;
}

/// Of one run log's scalars.
std::vector<AlarmWords> run_log_words(const Analysis& scalars) {
  const std::vector<TimelineFacts> all = analyzers::scale_history::timeline_facts(scalars);
  if (all.empty()) return {};
  const TimelineFacts& facts = all.front();
  if (analyzers::scale_history::skips_at_static_scale(facts) && facts.nonfinite.empty()) {
    return {static_words(facts)};
  }
  std::vector<AlarmWords> words = alarm_words(scalars);
  if (const auto collapse = collapse_words(scalars)) words.push_back({collapse->what, "", true});
  return words;
}

std::string_view values_of(const BrokenEnd& end) {
  if (!end.inf) return "NaN";
  return end.nan ? "NaN or infinities" : "infinities";
}

AlarmWords end_words(const BrokenEnd& end) {
  const std::string tensors = end.also == 0
                                  ? log::printable(end.tensor) + " holds"
                                  : fmt::format("{} and {} hold", log::printable(end.tensor),
                                                plural(end.also, "other tensor"));
  const std::string when = end.steps == 1
                               ? fmt::format("at the last recorded step, {}", end.last)
                               : fmt::format("from step {} to the last, {}, at {} recorded steps",
                                             end.first, end.last, count_text(end.steps));
  return {fmt::format("{} {} {}.", tensors, values_of(end), when),
          "No loss scale in the log explains this: look for the first NaN or infinity in the "
          "model, the data or the learning rate.",
          true};
}

/// Tensors that end in NaN or infinities, but of logs whose loss scale collapsed: collapse_words()
/// say how these ended, and what drove them there.
std::vector<BrokenEnd> ends_to_tell(const Analysis& analysis) {
  std::vector<BrokenEnd> ends = analyzers::overflow::broken_ends(analysis);
  if (ends.empty()) return ends;
  const std::vector<TimelineFacts> timelines = analyzers::scale_history::timeline_facts(analysis);
  std::erase_if(ends, [&](const BrokenEnd& end) {
    return std::ranges::any_of(timelines, [&](const TimelineFacts& facts) {
      return facts.log == end.log && analyzers::scale_history::collapse_of(facts) != nullptr;
    });
  });
  return ends;
}

}  // namespace

std::vector<AlarmWords> first_words(const Analysis& analysis) {
  std::vector<AlarmWords> all = alarm_words(analysis);
  const auto add = [&](const std::string& log, AlarmWords words) {
    words.what = place(analysis, log) + words.what;
    all.push_back(std::move(words));
  };
  for (const Analysis& scalars : analyzers::scale_history::run_log_scalars(analysis)) {
    for (AlarmWords& words : run_log_words(scalars)) add(scalars.logs[0], std::move(words));
  }
  for (const BrokenEnd& end : ends_to_tell(analysis)) add(end.log, end_words(end));
  return all;
}

std::string first_text(const Analysis& analysis) {
  std::string out;
  for (const AlarmWords& words : first_words(analysis)) {
    out += words.what + (words.action.empty() ? "" : " ") + words.action + "\n";
  }
  if (const auto collapse = collapse_words(analysis)) {
    out += collapse->what + " " + collapse->driver + "\n";
  }
  return out;
}

bool ends_broken(const Analysis& analysis) {
  return std::ranges::any_of(first_words(analysis), &AlarmWords::lasts);
}

bool broken(const analyzers::Study& study) {
  const analyzers::recommend::Recommendation& r = study.advice;
  return r.nan_in_model || !r.overflow_without_cure.empty() || ends_broken(study.analysis);
}

}  // namespace halfscope::reports::answer
