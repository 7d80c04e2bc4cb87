// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/underflow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <limits>
#include <set>
#include <stdexcept>

#include "analyzers/frames/quantised.hpp"
#include "analyzers/frames/value_total.hpp"
#include "analyzers/readers/common/log_files.hpp"
#include "analyzers/readers/kinds.hpp"
#include "analyzers/readers/record/record_log.hpp"
#include "analyzers/underflow/tensor_collector.hpp"

namespace halfscope::analyzers::underflow {

using frames::Frame;
using frames::InputNeedsOption;
using frames::Option;
using frames::Selection;
using frames::Visitor;
using log::printable;

namespace {

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

/// Returns a visitor that adds all data but frames to the last of `runs`, at first the log itself.
Visitor notes_into(std::vector<LogFindings>& runs, const Visitor& companion) {
  Visitor visit;
  visit.peak = [&](const frames::StepPeak& peak) {
    if (companion.peak) companion.peak(peak);
    const bool tells = !peak.tensor.empty() || peak.max_abs != 0 || runs.back().manifest;
    if (tells) runs.back().peaks.push_back(peak);
  };
  visit.scalars = [&](const log::StepScalars& scalars) {
    if (companion.scalars) companion.scalars(scalars);
    runs.back().scalars.push_back(scalars);
  };
  visit.manifest = [&](const log::Manifest& manifest) {
    if (companion.manifest) companion.manifest(manifest);
    runs.back().manifest = manifest;
  };
  visit.other_rank = companion.other_rank;
  visit.rank_frame = companion.rank_frame;
  visit.rank_scalars = companion.rank_scalars;
  visit.kind = [&](const frames::LogKind& kind) {
    if (companion.kind) companion.kind(kind);
    runs.back().kinds.push_back(kind);
  };
  visit.skipped = [&](const frames::SkippedSteps& steps) { runs.back().skips.push_back(steps); };
  visit.quantised = [&](const frames::QuantisedSeries& series) {
    if (companion.quantised) companion.quantised(series);
    runs.back().quantised = true;
  };
  visit.run = [&, first = true](const std::string& name) mutable {
    if (companion.run) companion.run(name);
    if (first) runs.pop_back();
    first = false;
    runs.emplace_back().name = name;
  };
  return visit;
}

/// Makes a visitor throw on numbers of skipped steps that are too large to be added.
void limit_skipped(Visitor& visit, frames::ValueTotal& values, const std::string& log) {
  visit.skipped = [&, skipped = visit.skipped](const frames::SkippedSteps& steps) {
    values.add_skipped(steps.count.high, log);
    skipped(steps);
  };
  visit.kind = [&, kind = visit.kind](const frames::LogKind& told) {
    values.add_skipped(told.perhaps_skipped, log);
    kind(told);
  };
}

/// Returns true if another tool's log has other data than tensors.
bool tells_something(const LogFindings& run) {
  const bool ended = std::ranges::any_of(run.kinds, &frames::LogKind::ended_at_minimum);
  return !run.kinds.empty() &&
         (ended || !(run.peaks.empty() && run.scalars.empty() && run.skips.empty()));
}

/// Reads the log once more without a selection and throws log::BadInput with the reason why nothing
/// was found.
[[noreturn]] void refuse_empty(const readers::Log& log, const Selection& selection) {
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

/// Adds a note for each --role whose pattern matches no tensor.
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

/// Returns the findings of one log, or of each run in it.
std::vector<LogFindings> analyze_log(const readers::Log& opened, const std::string& log,
                                     const Selection& selection, Analysis& analysis,
                                     frames::ValueTotal& values, const frames::Progress& progress,
                                     const Visitor& companion) {
  std::vector<LogFindings> runs(1);
  runs.front().name = log;
  TensorCollector collector(log, analysis.target);
  Visitor visit = notes_into(runs, companion);
  visit.frame = [&](Frame&& frame) {
    values.add(frame, log);
    collector.add(frame, selection.at_run_scale ? frame.run_scale : analysis.loss_scale);
    if (companion.frame) companion.frame(std::move(frame));
  };
  limit_skipped(visit, values, log);
  readers::for_each_frame(opened, selection, visit, analysis.notes, progress);
  // Scalars alone suffice in another tool's log. For a run log's scalars there are other commands.
  const bool something = !selection.tensor_glob && std::ranges::any_of(runs, tells_something);
  const bool scalars = selection.scalars_suffice && !runs.back().scalars.empty();
  const bool quantised = std::ranges::any_of(runs, &LogFindings::quantised);
  if (collector.empty() && !something && !scalars && !quantised) refuse_empty(opened, selection);
  analysis.known_in_bfloat16 = analysis.known_in_bfloat16 && collector.known_in_bfloat16();
  runs.back().tensors = std::move(collector).finish();
  for (LogFindings& run : runs) {
    run.source = opened.path();
    run.clipped = is_clipped(run);
  }
  return runs;
}

}  // namespace

std::string path_in(const std::string& name) {
  return log::role_in_name(name) ? name.substr(name.find('/') + 1) : name;
}

std::optional<Dtype> narrowest_dtype(const TensorFindings& tensor) {
  if (tensor.suspected_fp16) return Dtype::f16;
  if (!tensor.source_dtype || !tensor.computed_dtype) {
    return tensor.source_dtype ? tensor.source_dtype : tensor.computed_dtype;
  }
  const bool stored_wider =
      format_of(*tensor.source_dtype).precision > format_of(*tensor.computed_dtype).precision;
  return stored_wider ? tensor.computed_dtype : tensor.source_dtype;
}

std::optional<Dtype> kept_in(const LogFindings& log, const TensorFindings& weight) {
  const std::string path = path_in(weight.name);
  const auto master = std::ranges::find_if(log.tensors, [&](const TensorFindings& t) {
    return t.role == log::Role::master_weight && path_in(t.name) == path;
  });
  return narrowest_dtype(master == log.tensors.end() ? weight : *master);
}

std::optional<Dtype> kept_in_16_bits(const LogFindings& log, const TensorFindings& weight) {
  const std::optional<Dtype> kept = kept_in(log, weight);
  return kept && format_of(*kept).width == 16 ? kept : std::nullopt;
}

Counts& Counts::operator+=(const Counts& other) {
  total += other.total;
  zero += other.zero;
  nan += other.nan;
  inf += other.inf;
  finite_nonzero += other.finite_nonzero;
  classes += other.classes;
  nonfinite_known = nonfinite_known && other.nonfinite_known;
  return *this;
}

std::size_t TensorRange::size() const {
  std::size_t n = 0;
  for (const LogFindings& log : *logs_) n += log.tensors.size();
  return n;
}

const TensorFindings& TensorRange::operator[](std::size_t index) const {
  auto log = logs_->begin();
  for (; index >= log->tensors.size(); ++log) index -= log->tensors.size();
  return log->tensors[index];
}

std::size_t TensorRange::index_of(const TensorFindings& tensor) const {
  std::size_t before = 0;
  for (const LogFindings& log : *logs_) {
    const TensorFindings* const first = log.tensors.data();
    const bool in_log =
        !std::less<>()(&tensor, first) && std::less<>()(&tensor, first + log.tensors.size());
    if (in_log) return before + static_cast<std::size_t>(&tensor - first);
    before += log.tensors.size();
  }
  return before;
}

std::vector<std::string> Analysis::names() const {
  std::vector<std::string> names;
  for (const LogFindings& log : logs) names.push_back(log.name);
  return names;
}

bool Analysis::has_run_log() const {
  return std::ranges::any_of(logs, [](const LogFindings& log) { return log.manifest.has_value(); });
}

Interval TensorFindings::without_noise(const Interval& count) const {
  return {count.low - std::min(count.low, rounding_noise),
          count.high - std::min(count.high, rounding_noise)};
}

bool TensorFindings::computed_in_fp16() const {
  return suspected_fp16 || computed_dtype == Dtype::f16 || source_dtype == Dtype::f16;
}

bool fits_as_is(const BoundedTable& table) {
  return table.is_exact() && table.exact().fits_as_is(kBinary16);
}

Boundaries Target::boundaries(double loss_scale, double recorded_scale) const {
  return halfscope::boundaries(format, loss_scale, recorded_scale, subnormals);
}

std::vector<Classes> TensorFindings::by_scale(const Target& target) const {
  std::vector<Classes> classes(kLastLog2Scale - kFirstLog2Scale + 1);
  for (const ScaledTable& t : tables) {
    const Boundaries limits = target.boundaries(1.0, t.scale);
    for (int k = kFirstLog2Scale; k <= kLastLog2Scale; ++k) {
      classes[static_cast<std::size_t>(k - kFirstLog2Scale)] +=
          classify(t.table, before_scaling(limits, k));
    }
  }
  return classes;
}

Classes TensorFindings::classes_at(const FormatFit& fit, Subnormals subnormals, int k) const {
  const NamedFormat& row = *find_format(fit.format);
  return classes_at({row.name, row.format, subnormals}, k);
}

Classes TensorFindings::classes_at(const Target& target, int k) const {
  Classes sum;
  for (const ScaledTable& t : tables) {
    sum += classify(t.table, before_scaling(target.boundaries(1.0, t.scale), k));
  }
  return sum;
}

Analysis analyze(const std::vector<std::filesystem::path>& logs, const Target& target,
                 const Selection& selection, const frames::Progress& progress,
                 const Companion& companion, const readers::Logs& opened) {
  if (logs.empty()) throw std::invalid_argument("logs: found none, expected one or more");
  if (selection.recorded_scale && !frames::usable_scale(*selection.recorded_scale)) {
    throw std::invalid_argument(
        fmt::format("recorded_scale: found {}, expected a positive normal binary32 number",
                    *selection.recorded_scale));
  }
  Analysis analysis;
  analysis.target = target;
  analysis.known_in_bfloat16 = target.by_default;
  analysis.loss_scale = selection.loss_scale;
  Selection wanted = selection;
  wanted.target = target.format;
  frames::ValueTotal values;
  for (const auto& [path, name] : readers::logs_at(opened, logs)) {
    const readers::Log& at = opened.at(path);
    const bool wanted_beside = companion && readers::may_have_scalars(at);
    const Visitor beside = wanted_beside ? companion(name) : Visitor();
    std::ranges::move(analyze_log(at, name, wanted, analysis, values, progress, beside),
                      std::back_inserter(analysis.logs));
  }
  note_unmatched_roles(selection, analysis);
  return analysis;
}

}  // namespace halfscope::analyzers::underflow
