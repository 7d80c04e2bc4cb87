// SPDX-License-Identifier: Apache-2.0
#include "analyzers/study.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "analyzers/ranks/rank_collector.hpp"
#include "analyzers/readers/kinds.hpp"
#include "analyzers/readers/logs.hpp"
#include "analyzers/scale_history/timeline_facts.hpp"
#include "analyzers/underflow/lost_mass.hpp"
#include "analyzers/underflow/provenance.hpp"
#include "analyzers/underflow/rounding_noise.hpp"
#include "analyzers/whole_steps.hpp"

namespace halfscope::analyzers {

using frames::Selection;
using replay::LogSeries;
using underflow::Analysis;
using underflow::Target;

namespace {

/// Results of one reading of the logs.
struct Read {
  Analysis analysis;
  LogSeries series;
  std::vector<formats::QuantisedLog> quantised;
  std::vector<ranks::RankStudy> ranks;
  std::vector<overflow::AttentionScores> scores;
  std::vector<reduction::Reduction> reductions;
  std::vector<weights::Movement> movements;
  std::vector<weights::Claim> claims;
};

/// Collectors that read the logs together with the analysis.
struct ExtraCollectors {
  ranks::RankCollector ranks;
  std::optional<replay::SeriesCollector> series;
  formats::QuantisedCollector quantised;

  explicit ExtraCollectors(ranks::RankCollector&& of_ranks) : ranks(std::move(of_ranks)) {}

  frames::Visitor begin(const std::string& log) {
    frames::Visitor visit = series ? series->begin(log) : frames::Visitor();
    ranks.watch(log, visit);
    quantised.begin(log);
    visit.quantised = [this](const frames::QuantisedSeries& found) { quantised.add(found); };
    return visit;
  }
};

Read read(const std::vector<std::filesystem::path>& logs, const Target& target,
          const Selection& selection, const PhaseCallback& phase, bool with_series,
          const readers::Logs& opened) {
  ExtraCollectors beside(ranks::RankCollector(target, selection));
  if (with_series && !selection.tensor_glob && target.name == Target().name) {
    beside.series.emplace(target, selection.recorded_scale);
  }
  const auto companion = [&](const std::string& log) { return beside.begin(log); };
  Read found;
  found.analysis = underflow::analyze(logs, target, selection, phase("reading"), companion, opened);
  if (!target.by_default || !underflow::runs_in_bfloat16(found.analysis)) {
    if (beside.series) found.series = beside.series->finish(found.analysis.logs);
  } else if (!underflow::judge_in_bfloat16(found.analysis)) {
    const Target own{"bfloat16", kBfloat16, target.subnormals};
    return read(logs, own, selection, phase, with_series, opened);
  }
  found.quantised = std::move(beside.quantised).finish();
  found.ranks = beside.ranks.finish(found.analysis.target);
  return found;
}

/// Runs all passes. The log files stay open until the last pass ends.
Read read_all(const std::vector<std::filesystem::path>& logs, const Target& target,
              const Selection& selection, const Passes& passes, const PhaseCallback& phase) {
  const readers::Logs opened(selection);
  Selection selected = selection;
  selected.scalars_suffice = passes.scalars_suffice;
  Read found = read(logs, target, selected, phase, passes.series, opened);
  if (passes.needs_tensors) {
    for (const auto& log : found.analysis.logs) readers::require_tensors(opened.at(log.source));
  }
  if (!passes.updates && !passes.formats && !passes.sums && !passes.reductions) return found;
  const bool updates_alone = !passes.formats && !passes.sums && !passes.reductions;
  const char* const what = updates_alone ? "weight updates" : "whole tensors";
  WholeTensorResults whole =
      add_whole_steps(found.analysis, selection, passes,
                      {.sufficient_snr_db = passes.sufficient_snr_db, .recipes = passes.recipes},
                      phase(what), opened, [&] { return phase("predictions"); });
  found.scores = std::move(whole.scores);
  found.reductions = std::move(whole.reductions);
  found.movements = std::move(whole.movements);
  found.claims = std::move(whole.claims);
  return found;
}

/// Adds the share of the gradients' mass that is lost at the analysis's own loss scale.
void add_lost(Findings& found) {
  const std::optional<int> log2 = exact_log2(found.analysis.loss_scale);
  const auto counted = underflow::loss_scaled_tensors(found.analysis);
  if (!log2 || counted.empty()) return;
  found.lost = underflow::LostMass(counted, found.analysis.target).at(*log2);
  found.worst_lost = underflow::worst_loss(counted, found.analysis.target, *log2);
}

Verdict verdict_of(const Findings& found) {
  using scale_history::RunState;
  using scale_history::TimelineFacts;
  Verdict verdict;
  const auto add = [&](const std::string& log, bool broken, bool beyond) {
    if (broken) verdict.broken.insert(log);
    if (beyond) verdict.beyond_scales.insert(log);
  };
  for (const TimelineFacts& facts : found.timelines) {
    const bool broken = facts.state == RunState::broken;
    add(facts.log, broken, broken || facts.collapsed_since());
  }
  for (const TimelineFacts& facts : found.run_timelines) {
    const bool broken = facts.state == RunState::broken;
    // A smaller scale may avoid the skips.
    const bool helps = facts.skips_at_static_scale() && facts.nonfinite.empty();
    add(facts.log, broken || facts.collapse() != nullptr,
        (broken || facts.collapsed_since()) && !helps);
  }
  for (const overflow::BrokenEnd& end : found.broken_ends) add(end.log, true, true);
  for (const updates::AdamState& state : found.adam) {
    if (!state.divides_by_zero()) continue;
    add(state.log, true, true);
    verdict.adam_divides_by_zero.insert(state.log);
  }
  if (const auto* const end = found.overflow.lasting()) add(end->log, false, true);
  return verdict;
}

void add_log(const underflow::LogFindings& log, Findings& found) {
  for (const frames::LogKind& kind : log.kinds) found.tool = std::max(found.tool, kind.tool);
  auto timeline = scale_history::timeline_facts(log);
  auto end = overflow::broken_end(log);
  if (end && !(timeline && timeline->collapse())) found.broken_ends.push_back(std::move(*end));
  if (timeline) found.timelines.push_back(std::move(*timeline));
  if (auto own = scale_history::run_log_facts(log)) found.run_timelines.push_back(std::move(*own));
  if (!found.carried_scale) found.carried_scale = scale_history::carried_scale(log);
}

}  // namespace

Passes recommend_passes() {
  const reduction::ReductionOptions sums = {.over = {reduction::Over::elements},
                                            .formats = {},
                                            .orders = {reduction::Order::sequential},
                                            .gradient_norms = false};
  return {
      .updates = true, .formats_if_8_bits = true, .sums = true, .series = true, .reductions = sums};
}

Passes report_passes() {
  const reduction::ReductionOptions sums = {
      .formats = {"binary16", "bfloat16"},
      .orders = {reduction::Order::sequential, reduction::Order::ring}};
  return {.updates = true,
          .what_if = true,
          .formats = true,
          .sums = true,
          .series = true,
          .reductions = sums};
}

Findings analyze(const std::vector<std::filesystem::path>& logs, const Target& target,
                 const Selection& selection, const Passes& asked, const PhaseCallback& phases) {
  Passes passes = asked;
  passes.formats |= passes.formats_if_8_bits && target.format.width == 8;
  const auto phase = [&](const std::string& what) {
    return phases ? phases(what) : frames::Progress();
  };
  Read found = read_all(logs, target, selection, passes, phase);
  Findings findings = findings_of(std::move(found.analysis));
  findings.scores = std::move(found.scores);
  findings.reductions = std::move(found.reductions);
  findings.movements = std::move(found.movements);
  findings.claims = std::move(found.claims);
  findings.series = std::move(found.series);
  findings.quantised = std::move(found.quantised);
  findings.ranks = std::move(found.ranks);
  findings.sufficient_snr_db = passes.sufficient_snr_db;
  if (passes.formats) {
    findings.amax_histories = formats::amax_histories(findings.analysis);
    findings.mx_gradients = formats::mx_gradients(findings.analysis);
  }
  return findings;
}

Findings findings_of(Analysis&& analysis) {
  Findings found;
  found.analysis = std::move(analysis);
  underflow::mark_rounding_noise(found.analysis);
  found.overflow = overflow::find_overflow(found.analysis);
  for (const underflow::LogFindings& log : found.analysis.logs) add_log(log, found);
  found.shifts = overflow::layer_shifts(found.analysis);
  found.peaks = underflow::tensor_peaks(found.analysis);
  found.adam = updates::adam_states(found.analysis);
  found.summed_loss = recommend::summed_loss(found.analysis.logs);
  found.in_bfloat16 = underflow::runs_in_bfloat16(found.analysis);
  add_lost(found);
  found.verdict = verdict_of(found);
  return found;
}

namespace {

/// Throws frames::InputNeedsOption if the gradients of the log seem to contain the loss scale.
void refuse_carried(const replay::StepSeries& series, const Analysis& analysis) {
  const auto log = std::ranges::find(analysis.logs, series.log, &underflow::LogFindings::name);
  if (log == analysis.logs.end() || !scale_history::carried_scale(*log)) return;
  throw frames::InputNeedsOption(
      log::printable(series.log) +
      ": gradients seem to carry the loss scale, so no policy can be replayed over them; "
      "give it with " +
      frames::Message(frames::Option::recorded_scale, "S"));
}

/// Keeps the runs that can be replayed: runs without gaps, and runs whose gaps were closed.
void close_gaps(LogSeries& runs, const Analysis& analysis, bool assume_constant) {
  std::vector<replay::StepSeries> whole;
  for (replay::StepSeries& series : runs.series) {
    try {
      refuse_carried(series, analysis);
      replay::close_gaps(series, assume_constant);
      whole.push_back(std::move(series));
    } catch (const log::BadInput& e) {
      runs.none.emplace_back(series.log, frames::message_of(e));
    }
  }
  runs.series = std::move(whole);
}

/// Returns the logs of other tools that have only scalars, each with its timeline facts.
std::vector<std::pair<const underflow::LogFindings*, const scale_history::TimelineFacts*>>
scalars_alone(const Study& all) {
  std::vector<std::pair<const underflow::LogFindings*, const scale_history::TimelineFacts*>> found;
  for (const scale_history::TimelineFacts& facts : all.timelines) {
    const auto log = std::ranges::find(all.analysis.logs, facts.log, &underflow::LogFindings::name);
    const bool alone = log != all.analysis.logs.end() && log->tensors.empty() && log->peaks.empty();
    if (alone) found.emplace_back(&*log, &facts);
  }
  return found;
}

/// Adds series of the loss scale and skipped steps for logs without gradients.
void add_scale_series(Study& all) {
  for (const auto& [log, told] : scalars_alone(all)) {
    const scale_history::TimelineFacts& facts = *told;
    if (auto series = replay::scale_series(*log, facts)) {
      all.series.series.push_back(std::move(*series));
    } else {
      all.not_replayed.emplace_back(
          facts.log, log::printable(facts.log) +
                         ": has no gradients, and does not tell which steps were skipped at which "
                         "loss scale, so no policy can be replayed; record the run "
                         "(docs/recording.md)");
    }
  }
}

/// Returns true if every log has a series.
bool every_log(const std::vector<replay::StepSeries>& runs, const Analysis& analysis) {
  return std::ranges::all_of(analysis.logs, [&](const underflow::LogFindings& log) {
    return std::ranges::find(runs, log.name, &replay::StepSeries::log) != runs.end();
  });
}

/// Returns the recommended static scale, and the series that can be replayed.
Study with_scales(Findings&& findings, const underflow::RecommendOptions& options,
                  bool assume_constant) {
  Study all{std::move(findings), {}, {}, {}};
  const recommend::Basis basis{all.analysis, all.overflow, options, all.reductions, all.timelines};
  all.advice = recommend::recommend(basis);
  // Infinities of these tensors come from an update that was divided by 0, not from overflow.
  for (const updates::AdamState& state : all.adam) {
    if (!state.divides_by_zero()) continue;
    std::erase_if(all.advice.overflow_without_cure, [&](const std::string& name) {
      return std::ranges::find(state.broken, name) != state.broken.end();
    });
  }
  close_gaps(all.series, all.analysis, assume_constant);
  all.not_replayed = std::move(all.series.none);
  recommend::add_scales(all.advice, basis, all.series.series);
  all.advice.beyond_scales = !all.verdict.beyond_scales.empty();
  return all;
}

/// Returns a function that is true for scales at which flushed values do no harm. It refers to the
/// arguments, which must outlive it.
replay::Harmless harmless(const Analysis& analysis, const underflow::RecommendOptions& options) {
  const auto counted = underflow::loss_scaled_tensors(analysis);
  return [counted, lost = underflow::LostMass(counted, analysis.target), &analysis,
          &options](int log2) {
    return !counted.empty() &&
           underflow::is_negligible(lost.at(log2),
                                    underflow::worst_loss(counted, analysis.target, log2), options);
  };
}

/// Replays the series and removes them from `all`.
void add_replays(Study& all, replay::PolicyOptions policies) {
  if (all.series.series.empty()) return;
  const underflow::RecommendOptions targets = policies.targets;
  policies.harmless = harmless(all.analysis, targets);
  for (replay::StepSeries& run : std::exchange(all.series.series, {})) {
    const auto log = std::ranges::find(all.analysis.logs, run.log, &underflow::LogFindings::name);
    // For a run log without gradient tensors only magnitudes are known.
    const bool magnitudes =
        log != all.analysis.logs.end() && log->kinds.empty() &&
        std::ranges::none_of(log->tensors, &underflow::TensorFindings::loss_scaled);
    all.policies.push_back(
        magnitudes ? replay::study_magnitudes(std::move(run), policies)
                   : replay::study_policies(std::move(run), policies, all.advice.static_advice()));
    replay::PolicyStudy& replayed = all.policies.back();
    if (all.verdict.beyond_scales.contains(replayed.series.log))
      replayed.advised.refused = replay::NoStatic::beyond;
  }
}

[[noreturn]] void refuse_replays(const Study& study) {
  using frames::Option;
  if (!study.not_replayed.empty())
    throw frames::InputNeedsOption(study.not_replayed.front().second);
  throw frames::InputNeedsOption(
      log::printable(study.advice.logs.front()) +
      ": does not have scalars of every step, so no policy can be replayed; expected a run log "
      "whose "
      "steps have max_abs/weight_grad or max_abs/activation_grad (docs/recording.md), or a series "
      "of magnitudes with " +
      frames::Message(Option::amax, "FILE", "[...]"));
}

}  // namespace

Study study(Findings&& findings, const Selection& selection,
            const underflow::RecommendOptions& options,
            const std::optional<replay::PolicyOptions>& policies) {
  const bool assume_constant = policies && policies->assume_constant;
  Study all = with_scales(std::move(findings), options, assume_constant);
  const recommend::Basis basis{all.analysis, all.overflow, options, all.reductions, all.timelines};
  std::span<const replay::StepSeries> replayed;
  if (every_log(all.series.series, all.analysis)) replayed = all.series.series;
  const replay::Harmless none;
  recommend::add_dynamic(all.advice, basis, replayed,
                         replayed.empty() ? none : harmless(all.analysis, options));
  recommend::add_own_scale(all.advice, all.tool, all.timelines);
  recommend::add_cures(all.advice, basis, selection);
  if (!policies) return all;
  replay::PolicyOptions replays = *policies;
  replays.targets = options;
  add_replays(all, replays);
  return all;
}

Study recommendation(Findings&& findings, const Selection& selection,
                     const underflow::RecommendOptions& options) {
  replay::PolicyOptions policies;
  policies.policies = {policy::make("torch")};
  return study(std::move(findings), selection, options, policies);
}

std::vector<replay::PolicyStudy> study_policies(Findings&& findings,
                                                const replay::PolicyOptions& policies) {
  Study all = with_scales(std::move(findings), policies.targets, policies.assume_constant);
  add_scale_series(all);
  add_replays(all, policies);
  if (all.policies.empty()) refuse_replays(all);
  return std::move(all.policies);
}

}  // namespace halfscope::analyzers
