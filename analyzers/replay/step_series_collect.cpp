// SPDX-License-Identifier: Apache-2.0
// The series of logs that are read one after another, and notes about missing data.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "analyzers/replay/step_series.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::replay {

using frames::Frame;
using frames::Notes;
using log::printable;
using underflow::LogFindings;

namespace {

/// Returns true if the log is one rank's folder of a run with several ranks. If several ranks are
/// read, the reader reports those that are missing.
bool lacks_ranks(const StepSeries& series) {
  if (!series.manifest || series.manifest->world_size <= 1) return false;
  if (log::rank_folders(series.log).size() > 1) return false;
  return std::ranges::any_of(series.seen, &AttemptMagnitudes::partial);
}

/// Returns a number of steps as text: "2 steps", "1 to 3 steps".
std::string steps_text(const Interval& count) {
  const std::string steps = count.high == 1 ? "step" : "steps";
  return count.exact() ? fmt::format("{} {}", count.low, steps)
                       : fmt::format("{} to {} {}", count.low, count.high, steps);
}

/// Returns notes on facts that no replay of the log can know.
Notes notes_of(const StepSeries& series, const LogFindings& log) {
  Notes notes;
  const std::string shown = printable(series.log);
  if (log.clipped) {
    notes.add(shown +
              ": weight gradients were clipped before they were recorded, so they were as "
              "large or larger; a step may overflow although no recorded magnitude does");
  }
  if (lacks_ranks(series)) {
    notes.add(
        fmt::format("{}: is only rank {} of {}: the gradients of the other ranks are unknown, and "
                    "steps may overflow there; give the folder that holds all ranks",
                    shown, series.manifest->rank, series.manifest->world_size));
  }
  Interval skipped;
  for (const frames::SkippedSteps& steps : log.skips) skipped += steps.count;
  if (skipped.high != 0) {
    notes.add(
        fmt::format("{}: the run skipped {}, but the log does not say which ones; the replay does "
                    "not include what made it skip them",
                    shown, steps_text(skipped)));
  }
  return notes;
}

}  // namespace

void weights_at_least(StepSeries& series) {
  const auto at_least = [](AttemptMagnitudes& seen) { seen.partial = seen.weights_partial = true; };
  std::for_each(series.seen.begin(), series.seen.end(), at_least);
  for (auto& [index, attempts] : series.retried) {
    std::for_each(attempts.begin(), attempts.end(), at_least);
  }
}

void SeriesCollector::start(const std::string& log) {
  finish_log();
  log_ = log;
  builder_ = std::make_unique<SeriesBuilder>(log, target_, recorded_scale_);
}

frames::Visitor SeriesCollector::begin(const std::string& log) {
  start(log);
  frames::Visitor visit;
  visit.frame = [this](Frame&& frame) { builder_->add(frame); };
  visit.peak = [this](const frames::StepPeak& peak) { builder_->add(peak); };
  visit.kind = [this](const frames::LogKind& kind) { builder_->add(kind); };
  visit.manifest = [this](const log::Manifest& manifest) { builder_->add(manifest); };
  visit.scalars = [this](const log::StepScalars& step) { builder_->add(step); };
  visit.other_rank = [this](const auto& scalars) { builder_->add_rank(scalars); };
  visit.run = [this](const std::string& name) { start(name); };
  return visit;
}

void SeriesCollector::finish_log() {
  const auto builder = std::exchange(builder_, nullptr);
  if (!builder) return;
  try {
    if (auto series = builder->finish()) found_.series.push_back(std::move(*series));
  } catch (const log::BadInput& e) {
    found_.none.emplace_back(log_, frames::message_of(e));
  }
}

LogSeries SeriesCollector::finish(const std::vector<LogFindings>& logs) {
  finish_log();
  for (StepSeries& series : found_.series) {
    const auto log = std::ranges::find(logs, series.log, &LogFindings::name);
    if (log == logs.end()) continue;
    if (log->clipped) weights_at_least(series);
    series.notes = notes_of(series, *log);
  }
  return std::exchange(found_, {});
}

}  // namespace halfscope::analyzers::replay
