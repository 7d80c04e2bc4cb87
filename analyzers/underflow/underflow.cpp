// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/underflow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <stdexcept>

#include "analyzers/frames/value_total.hpp"
#include "analyzers/readers/kinds.hpp"
#include "analyzers/underflow/nothing_found.hpp"
#include "analyzers/underflow/tensor_collector.hpp"

namespace halfscope::analyzers::underflow {

using frames::Frame;
using frames::Selection;
using frames::Visitor;

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

namespace {

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
