// SPDX-License-Identifier: Apache-2.0
#include "analyzers/study.hpp"

#include <fmt/format.h>

#include <utility>

#include "analyzers/readers/logs.hpp"
#include "analyzers/scale_history/run_log_facts.hpp"
#include "analyzers/underflow/in_bfloat16.hpp"
#include "analyzers/underflow/kept_weights.hpp"
#include "analyzers/underflow/lost_mass.hpp"
#include "analyzers/underflow/provenance.hpp"
#include "analyzers/whole_steps.hpp"

namespace halfscope::analyzers {

using frames::Selection;
using replay::LogSeries;
using underflow::Analysis;
using underflow::Target;

namespace {

/// What is read at once: an analysis, and the series of its logs.
struct Read {
  Analysis analysis;
  LogSeries series;
};

/// What sees the logs beside the analysis.
struct Beside {
  std::optional<replay::SeriesCollector> series;
  std::optional<underflow::InBfloat16> in_bfloat16;

  frames::Visitor begin(const std::string& log) {
    frames::Visitor visit = series ? series->begin(log) : frames::Visitor();
    if (!in_bfloat16) return visit;
    visit.frame = [judge = in_bfloat16->begin(log),
                   collect = std::move(visit.frame)](frames::Frame&& frame) {
      judge(frame);
      if (collect) collect(std::move(frame));
    };
    return visit;
  }
};

Read read(const std::vector<std::filesystem::path>& logs, const Target& target,
          const Selection& selection, const Phases& phase, bool with_series,
          const readers::Logs& opened) {
  Beside beside;
  if (with_series && !selection.tensor_glob && target.name == Target().name) {
    beside.series.emplace(target, selection.recorded_scale);
  }
  if (target.by_default) beside.in_bfloat16.emplace(target, selection);
  const auto companion = [&](const std::string& log) { return beside.begin(log); };
  Read found;
  found.analysis = underflow::analyze(logs, target, selection, phase("reading"), companion, opened);
  if (!target.by_default || !underflow::runs_in_bfloat16(found.analysis)) {
    if (beside.series) found.series = beside.series->finish(found.analysis.logs);
  } else if (!beside.in_bfloat16->judge(found.analysis)) {
    const Target own{"bfloat16", kBfloat16, target.subnormals};
    return read(logs, own, selection, phase, with_series, opened);
  }
  return found;
}

/// The gradients' mass that is lost at the analysis' own loss scale.
std::optional<MassShare> lost_mass(const Analysis& analysis) {
  const std::optional<int> log2 = exact_log2(analysis.loss_scale);
  const auto counted = underflow::counted_tensors(analysis);
  if (!log2 || counted.empty()) return std::nullopt;
  return underflow::lost_mass(counted, analysis.target, *log2);
}

void add_log(const underflow::LogFindings& log, Findings& found) {
  auto timeline = scale_history::timeline_facts(log);
  auto end = overflow::broken_end(log);
  if (end && !(timeline && timeline->collapse())) found.broken_ends.push_back(std::move(*end));
  if (timeline) found.timelines.push_back(std::move(*timeline));
  if (auto own = scale_history::run_log_facts(log)) found.run_timelines.push_back(std::move(*own));
  if (!found.carried_scale) found.carried_scale = scale_history::carried_scale(log);
}

}  // namespace

Findings analyze(const std::vector<std::filesystem::path>& logs, const Target& target,
                 const Selection& selection, const Passes& passes, const Phases& phases) {
  const auto phase = [&](const std::string& what) {
    return phases ? phases(what) : frames::Progress();
  };
  const readers::Logs opened;
  Read found = read(logs, target, selection, phase, passes.series, opened);
  if (passes.updates || passes.formats || passes.sums) {
    const bool updates_alone = !passes.formats && !passes.sums;
    const char* const what = updates_alone ? "weight updates" : "whole tensors";
    add_whole_steps(found.analysis, selection, passes, {}, phase(what), opened);
  }
  Findings findings = findings_of(std::move(found.analysis));
  findings.series = std::move(found.series);
  return findings;
}

Findings findings_of(Analysis&& analysis) {
  Findings found;
  found.analysis = std::move(analysis);
  found.overflow = overflow::find_overflow(found.analysis);
  for (const underflow::LogFindings& log : found.analysis.logs) add_log(log, found);
  found.peaks = underflow::tensor_peaks(found.analysis);
  found.in_bfloat16 = underflow::runs_in_bfloat16(found.analysis);
  found.weights_kept_in = underflow::all_kept_in_16_bits(found.analysis);
  found.lost = lost_mass(found.analysis);
  return found;
}

const overflow::OverflowEvent* Study::lasting_first() const {
  const overflow::OverflowEvent* const end = overflow.lasting();
  const auto& model = advice.nan_in_model;
  return end != nullptr && model && model->step <= end->step ? nullptr : end;
}

namespace {

/// Which steps are missing between the first and the last; empty where none are.
std::string gap_text(const std::vector<std::int64_t>& steps) {
  std::uint64_t missing = 0;
  std::string first;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const std::int64_t from = steps[i - 1] + 1, to = steps[i] - 1;
    if (from > to) continue;
    missing += static_cast<std::uint64_t>(to - from) + 1;
    if (!first.empty()) continue;
    first = from == to ? fmt::format("step {}", from) : fmt::format("steps {} to {}", from, to);
  }
  if (missing == 0) return "";
  return fmt::format(
      "Of {} of its steps no scalars are recorded, first of {}: 'halfscope policies LOG "
      "--assume-constant-between' replays it, taking each of them to be like the one before.",
      missing, first);
}

/// Leaves the runs that can be replayed: of several steps, without gaps.
void drop_gaps(LogSeries& runs) {
  std::vector<replay::StepSeries> whole;
  for (replay::StepSeries& series : runs.series) {
    const std::string gap = gap_text(series.steps);
    if (!gap.empty()) {
      runs.none.emplace_back(series.log, gap);
    } else if (series.steps.size() > 1) {
      whole.push_back(std::move(series));
    }
  }
  runs.series = std::move(whole);
}

/// The static scale that replays show beside the policies.
std::optional<int> static_to_replay(const recommend::Recommendation& advice) {
  return advice.no_step_held() ? std::nullopt : advice.static_log2;
}

}  // namespace

Study study(Findings&& findings, const Selection& selection,
            const underflow::RecommendOptions& options,
            const std::optional<replay::PolicyOptions>& policies) {
  Study all{std::move(findings), {}, {}, {}};
  const recommend::Basis basis{all.analysis, all.overflow, options};
  all.advice = recommend::recommend(basis);

  replay::PolicyOptions replays = policies.value_or(replay::PolicyOptions());
  replays.targets = options;
  std::vector<replay::StepSeries>& runs = all.series.series;
  const std::size_t read = runs.size();
  drop_gaps(all.series);
  const bool every_run = runs.size() == read && all.series.none.empty();
  all.not_replayed = std::move(all.series.none);

  // One setting is recommended: of several runs none is the best for all.
  std::optional<replay::TunedPolicy> tuned;
  if (every_run && runs.size() == 1) tuned = replay::tune(runs.front(), replays);
  recommend::Runs replayed;
  if (every_run) replayed = {runs, tuned ? &*tuned : nullptr};
  recommend::complete(all.advice, basis, selection, replayed);

  if (!policies) return all;
  for (replay::StepSeries& run : std::exchange(runs, {})) {
    const replay::Advised advised{static_to_replay(all.advice), std::move(tuned)};
    all.policies.push_back(replay::study_policies(std::move(run), replays, advised));
  }
  return all;
}

}  // namespace halfscope::analyzers
