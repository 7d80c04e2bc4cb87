// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "analyzers/recommend/divergence.hpp"
#include "analyzers/recommend/may_use.hpp"
#include "analyzers/recommend/recommend.hpp"
#include "analyzers/recommend/step_maxima.hpp"
#include "analyzers/underflow/lost_mass.hpp"
#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers::recommend {

using underflow::Analysis;

namespace {

/// Copies the effects of static_scale from the evidence of every scale.
void put_static(Recommendation& advice, const Analysis& analysis, const underflow::LostMass& lost,
                const std::vector<LogMaxima>& maxima) {
  advice.lost_at_1 = lost.at(0);
  advice.worst_lost = underflow::worst_loss(lost.tensors(), analysis.target, *advice.static_log2);
  for (const LogMaxima& log : maxima) advice.steps_left_out += log.left_out.size();
  for (const ScaleEvidence& scale : advice.scales) {
    if (scale.log2_scale != *advice.static_log2) continue;
    advice.lost_at_recommended = scale.lost;
    if (scale.skip.steps != 0) advice.skip = scale.skip;
  }
}

/// Returns the highest scale if FP16 also holds sums over microbatches; empty if it is not lower.
std::optional<int> highest_if_half(const Recommendation& advice, const Basis& basis) {
  if (!advice.highest_log2) return std::nullopt;
  const Format format = basis.analysis.target.format;
  int highest = *advice.highest_log2;
  for (const underflow::LogFindings& log : basis.analysis.logs) {
    const underflow::LogScalars scalars(log);
    for (const auto& [step, sum] : scalars.sums()) {
      const int k = underflow::StepMagnitude{magnitude_of(sum)}.highest_safe_log2(format);
      highest = std::min(highest, k - basis.options.headroom_bits);
    }
  }
  return highest < *advice.highest_log2 ? std::optional(highest) : std::nullopt;
}

std::optional<NanInModel> first_in_model(const overflow::OverflowFindings& found) {
  for (const overflow::OverflowEvent& event : found.events) {
    if (event.cause != overflow::Cause::nan_in_model) continue;
    return NanInModel{event.log, event.tensor, event.step,
                      event.nan.low != 0 || event.inf.low == 0};
  }
  return std::nullopt;
}

}  // namespace

bool Recommendation::all_steps_censored() const {
  if (!static_log2 || !limited_by || !limited_by->censored) return false;
  return skip && skip->steps != 0 && skip->exceedances + skip->perhaps == skip->steps;
}

replay::StaticAdvice Recommendation::static_advice() const {
  using replay::NoStatic;
  if (no_scale == NoScale::diverges) return {highest_log2, NoStatic::diverges, false};
  if (!static_log2) return {{}, NoStatic::unknown, false};
  if (all_steps_censored()) return {static_log2, NoStatic::upper_bound, true};
  return {static_log2, {}, overflow_not_identifiable};
}

Recommendation recommend(const Basis& basis) {
  Recommendation advice = static_scale(basis);
  advice.nan_in_model = first_in_model(basis.overflow);
  refuse_divergence(advice, basis.overflow);
  return advice;
}

void add_scales(Recommendation& advice, const Basis& basis,
                std::span<const replay::StepSeries> runs) {
  const bool no_scale = advice.needs_no_scale();
  const std::vector<LogMaxima> maxima = step_maxima(basis, runs);
  if (advice.static_log2) {
    const underflow::Analysis& analysis = basis.analysis;
    const underflow::LostMass lost(underflow::loss_scaled_tensors(analysis), analysis.target);
    if (!no_scale) advice.scales = scale_evidence(analysis, advice, lost, maxima);
    put_static(advice, analysis, lost, maxima);
  }
  if (!no_scale) advice.highest_if_half_log2 = highest_if_half(advice, basis);
  advice.may_use = may_use(basis.analysis, advice);
}

void add_cures(Recommendation& advice, const Basis& basis, const frames::Selection& selection) {
  advice.ranks = rank_sum(basis.analysis, advice, selection);
  advice.per_layer = per_layer(basis, advice);
  advice.keep_in_fp32 = keep_in_fp32(basis, advice);
  advice.footprint = footprint(basis.analysis);
}

}  // namespace halfscope::analyzers::recommend
