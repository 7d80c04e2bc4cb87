// SPDX-License-Identifier: Apache-2.0
#include "analyzers/study.hpp"

#include <fmt/format.h>

#include <utility>

#include "analyzers/formats/format_fit.hpp"
#include "analyzers/overflow_end.hpp"
#include "analyzers/readers/logs.hpp"
#include "analyzers/recommend/may_use.hpp"
#include "analyzers/underflow/provenance.hpp"
#include "analyzers/updates/updates.hpp"

namespace halfscope::analyzers {

using frames::Selection;
using replay::LogSeries;
using underflow::Analysis;
using underflow::Target;

namespace {

/// Reads the logs once. series: may be null.
Analysis read(const std::vector<std::filesystem::path>& logs, const Target& target,
              const Selection& selection, const frames::Progress& progress, LogSeries* series,
              const readers::Logs& opened) {
  // A policy decides by all gradients, in binary16.
  const bool with_series =
      series != nullptr && !selection.tensor_glob && target.name == Target().name;
  if (!with_series) return underflow::analyze(logs, target, selection, progress, {}, opened);
  replay::SeriesCollector collector(target, selection.recorded_scale);
  const auto companion = [&](const std::string& log) { return collector.begin(log); };
  Analysis analysis = underflow::analyze(logs, target, selection, progress, companion, opened);
  *series = collector.finish(analysis.clipped);
  return analysis;
}

}  // namespace

Analysis analyze(const std::vector<std::filesystem::path>& logs, const Target& target,
                 const Selection& selection, const Passes& passes, const Phases& phases,
                 LogSeries* series) {
  const auto phase = [&](const std::string& what) {
    return phases ? phases(what) : frames::Progress();
  };
  const readers::Logs opened;
  Analysis analysis = read(logs, target, selection, phase("reading"), series, opened);
  if (target.by_default && underflow::runs_in_bfloat16(analysis)) {
    const Target own{"bfloat16", kBfloat16, target.subnormals};
    if (series != nullptr) *series = {};
    analysis = read(logs, own, selection, phase("reading"), series, opened);
  }
  if (passes.updates) {
    updates::add_updates(analysis, selection, passes.what_if, phase("weight updates"),
                         updates::AddedTo::target, opened);
  }
  if (passes.formats) {
    formats::add_fits(analysis, selection, {}, phase("whole tensors"), opened);
  } else if (passes.sums) {
    formats::add_sums(analysis, selection, phase("whole tensors"), opened);
  }
  return analysis;
}

namespace {

std::optional<recommend::NanInModel> first_in_model(const overflow::OverflowFindings& found) {
  for (const overflow::OverflowEvent& event : found.events) {
    if (event.cause != overflow::Cause::nan_in_model) continue;
    return recommend::NanInModel{event.log, event.tensor, event.step,
                                 event.nan.low != 0 || event.inf.low == 0};
  }
  return std::nullopt;
}

}  // namespace

Study study(Analysis&& analysis, const Selection& selection,
            const underflow::RecommendOptions& options, LogSeries&& series) {
  Study all{std::move(analysis), {}, {}, std::move(series), {}, {}};
  all.overflow = overflow::find_overflow(all.analysis);
  all.analysis.at_every_scale = overflow::steps_at_every_scale(all.analysis, all.overflow.events);
  all.analysis.maybe_rounded = overflow::steps_maybe_rounded(all.analysis, all.overflow.events);
  all.advice = recommend::recommend(all.analysis, options);
  all.advice.nan_in_model = first_in_model(all.overflow);
  refuse_divergence(all);
  all.advice.may_use = recommend::may_use(all.analysis, all.advice);
  recommend::complete(all.advice, all.analysis, selection, options, all.series);
  return all;
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

}  // namespace

void add_policies(Study& study, const replay::PolicyOptions& options) {
  LogSeries found = std::exchange(study.series, {});
  study.not_replayed = std::move(found.none);
  for (replay::StepSeries& series : found.series) {
    if (series.steps.size() < 2) continue;
    const std::string gap = options.assume_constant ? std::string() : gap_text(series.steps);
    if (gap.empty()) {
      study.policies.push_back(replay::study_policies(std::move(series), options));
    } else {
      study.not_replayed.emplace_back(series.log, gap);
    }
  }
}

}  // namespace halfscope::analyzers
