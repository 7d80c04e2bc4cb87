// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/nothing_found.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "analyzers/frames/quantised.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/kinds.hpp"
#include "analyzers/readers/record/record_log.hpp"

namespace halfscope::analyzers::underflow {

using frames::InputNeedsOption;
using frames::Option;
using frames::Selection;

namespace {

using log::printable;

/// Returns a text like "it has 12 steps from 0 to 180, the nearest are 0 and 16".
std::string steps_text(const std::set<std::int64_t>& steps, const Selection& selection) {
  std::string text = "it has " + std::to_string(steps.size()) +
                     (steps.size() == 1 ? " step, " : " steps from ") +
                     std::to_string(*steps.begin());
  if (steps.size() == 1) return text;
  text += " to " + std::to_string(*steps.rbegin());
  const auto above = steps.lower_bound(selection.first_step);
  if (above == steps.end()) return text;
  if (above == steps.begin()) return text;
  return text + ", the nearest are " + std::to_string(*std::prev(above)) + " and " +
         std::to_string(*above);
}

[[noreturn]] void refuse_scalars_alone(const std::string& log, std::uint64_t steps) {
  throw log::BadInput(
      fmt::format("{}: holds the scalars of {} {} and no histograms of tensors; record histograms "
                  "(docs/recording.md), or use what needs scalars only: 'halfscope policies LOG' "
                  "replays loss-scaling policies",
                  log, steps, steps == 1 ? "step" : "steps"));
}

bool any_matches(const Analysis& analysis, const std::string& glob) {
  return std::ranges::any_of(analysis.logs, [&](const LogFindings& log) {
    return std::ranges::any_of(
               log.tensors,
               [&](const auto& tensor) { return frames::matches(glob, tensor.name); }) ||
           std::ranges::any_of(log.peaks, [&](const auto& peak) {
             return !peak.tensor.empty() && frames::matches(glob, peak.tensor);
           });
  });
}

}  // namespace

void refuse_empty(const readers::Log& log, const Selection& selection) {
  Selection everything = selection;
  everything.tensor_glob.reset();
  everything.first_step = std::numeric_limits<std::int64_t>::min();
  everything.end_step = std::numeric_limits<std::int64_t>::max();
  // Tensor files have no scales; 1 avoids an error about that, since no value is used here.
  const bool tells_scales = readers::common::is_run_log(log.path()) ||
                            !log::rank_folders(log.path()).empty() ||
                            readers::record::is_record(log.opened());
  if (!tells_scales) {
    everything.recorded_scale = 1.0;
    everything.scale_tag.reset();
  }
  std::vector<std::string> names;
  std::set<std::int64_t> steps;
  frames::Notes notes;
  const auto see_name = [&](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end() && names.size() < 5) {
      names.push_back(name);
    }
  };
  const auto see = [&](frames::Frame&& frame) {
    see_name(frame.name);
    steps.insert(frame.step);
  };
  std::uint64_t with_scalars = 0;
  const auto see_scalars = [&](const log::StepScalars&) { ++with_scalars; };
  frames::Visitor visit{see, {}, {}, see_scalars};
  visit.quantised = [&](const frames::QuantisedSeries& series) {
    see_name(frames::tensor_of(series.layer, series.tensor));
    for (const frames::QuantisedValue& value : series.values) steps.insert(value.step);
  };
  readers::for_each_frame(log, everything, visit, notes);
  const std::string shown = printable(log.path().string());
  if (names.empty() && with_scalars != 0) refuse_scalars_alone(shown, with_scalars);
  if (names.empty()) {
    throw InputNeedsOption(shown + ": holds no tensor of floating-point values" +
                           (notes.empty() ? frames::Message() : "; " + notes.front()));
  }
  if (steps.lower_bound(selection.first_step) == steps.lower_bound(selection.end_step)) {
    throw InputNeedsOption(shown + ": no recorded step is selected by " + Option::step + "; " +
                           steps_text(steps, selection));
  }
  std::string list;
  for (const std::string& name : names)
    list += (list.empty() ? "'" : ", '") + printable(name) + "'";
  throw InputNeedsOption(shown + ": no tensor is selected by " + Option::tensor + " and " +
                         Option::step + "; it holds " + list + "... at " +
                         std::to_string(steps.size()) + " steps from " +
                         std::to_string(*steps.begin()) + " to " + std::to_string(*steps.rbegin()));
}

void note_unmatched_roles(const Selection& selection, Analysis& analysis) {
  for (const auto& [glob, role] : selection.roles) {
    if (any_matches(analysis, glob)) continue;
    analysis.notes.add(
        frames::role_option(printable(glob), log::name_of(role)) + ": matches no selected tensor" +
        (analysis.tensors().empty() ? ""
                                    : fmt::format("; the first of these is '{}'",
                                                  printable(analysis.tensors().front().name))));
  }
}

}  // namespace halfscope::analyzers::underflow
