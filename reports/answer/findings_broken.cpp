// SPDX-License-Identifier: Apache-2.0
// Findings on failures that no loss scale prevents: lasting NaN, values beyond the format.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "halfscope/log/error.hpp"
#include "halfscope/number/convert.hpp"
#include "reports/answer/findings_list.hpp"
#include "reports/answer/first_words.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/summary.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/timeline_words.hpp"

namespace halfscope::reports::answer::found {

using analyzers::Study;
using analyzers::overflow::Cause;
using analyzers::overflow::OverflowEvent;

void carried(const Study& study, List& to) {
  const auto words = carried_words(study);
  if (words) to.push_back({Severity::breaks, words->what, words->action, Evidence::scales});
}

void alarms(const Study& study, List& to) {
  for (const AlarmWords& alarm : first_words(study)) {
    const Severity least = alarm.minor ? Severity::note : Severity::warning;
    to.push_back({alarm.lasts ? Severity::breaks : least, alarm.what, alarm.action,
                  study.timelines.empty() ? Evidence::overflow : Evidence::timeline});
  }
}

void collapse(const Study& study, List& to) {
  if (study.analysis.logs.size() == 1 && study.ends_broken()) return;  // alarms() says it
  for (const CollapseWords& words : collapse_words(study)) {
    if (words.broken) continue;
    to.push_back({Severity::breaks, words.what, words.rest(), Evidence::timeline});
  }
}

void lasting(const Study& study, List& to) {
  const OverflowEvent* const end = study.lasting_to_report_first();
  if (end == nullptr) return;
  to.push_back({Severity::breaks,
                fmt::format("From step {} to the last, {}, there are infinities or NaN that {}, "
                            "first in {}.",
                            end->step, end->last_step, no_cure_text(*end), code(end->tensor)),
                "", Evidence::overflow});
}

void in_model(const Study& study, List& to) {
  const auto& found = study.advice.nan_in_model;
  if (!found) return;
  const auto event =
      std::ranges::find(study.overflow.events, Cause::nan_in_model, &OverflowEvent::cause);
  to.push_back({Severity::breaks,
                fmt::format("{} in the model from step {}, first in {}.",
                            found->nan ? "NaN" : "Infinity", found->step, code(found->tensor)),
                "No loss scale and no wider format helps." +
                    (event == study.overflow.events.end() ? "" : " " + log::printable(event->why)),
                Evidence::overflow});
}

namespace {

/// Returns the largest finite magnitude of the tensors of this name; empty if the format holds it.
std::optional<double> largest_beyond(const Study& study, const std::string& name) {
  const Format& format = study.analysis.target.format;
  const double limit = to_double(format, format.largest_finite());
  double most = limit;
  for (const auto& tensor : study.analysis.tensors()) {
    if (tensor.name == name) most = std::max(most, tensor.max_abs.value_or(0));
  }
  return most > limit ? std::optional(most) : std::nullopt;
}

}  // namespace

void without_cure(const Study& study, List& to) {
  const std::vector<std::string>& tensors = study.advice.overflow_without_cure;
  if (tensors.empty()) return;
  const bool one = tensors.size() == 1;
  // One number for several tensors would seem to be the same in all of them.
  const auto most = one ? largest_beyond(study, tensors.front()) : std::nullopt;
  to.push_back(
      {Severity::breaks,
       fmt::format("{} {} too large for {}, and a loss scale does not change that.",
                   listed_code(tensors, 3),
                   most ? "reaches " + magnitude_text(*most) + "," : (one ? "is" : "are"),
                   format_name(study.analysis)),
       fmt::format("Keep {} in FP32 or bfloat16, or make the values smaller.", one ? "it" : "them"),
       Evidence::overflow});
}

}  // namespace halfscope::reports::answer::found
