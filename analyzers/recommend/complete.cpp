// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <string>

#include "analyzers/recommend/recommend.hpp"
#include "analyzers/recommend/step_maxima.hpp"
#include "analyzers/underflow/lost_mass.hpp"
#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers::recommend {

using underflow::Analysis;

namespace {

/// What static_scale itself does, out of the evidence for every scale.
void put_static(Recommendation& advice, const Analysis& analysis) {
  std::vector<const underflow::TensorFindings*> counted;
  for (const underflow::TensorFindings& t : analysis.tensors) {
    if (t.counted) counted.push_back(&t);
  }
  advice.lost_at_1 = underflow::lost_mass(counted, analysis.target, 0);
  for (const LogMaxima& log : step_maxima(analysis)) advice.steps_left_out += log.left_out.size();
  for (const ScaleEvidence& scale : advice.scales) {
    if (scale.log2_scale != *advice.static_log2) continue;
    advice.lost_at_recommended = scale.lost;
    if (scale.skip.steps != 0) advice.skip = scale.skip;
  }
}

/// The highest scale where FP16 holds the sums over microbatches too, where that is less.
std::optional<int> highest_if_half(const Recommendation& advice, const Analysis& analysis,
                                   const underflow::RecommendOptions& options) {
  if (!advice.highest_log2) return std::nullopt;
  int highest = *advice.highest_log2;
  for (const std::string& log : std::set(analysis.logs.begin(), analysis.logs.end())) {
    const underflow::LogScalars scalars(analysis, log);
    for (const auto& [step, sum] : scalars.sums()) {
      const int k = underflow::highest_safe_log2(magnitude_of(sum), 1.0, analysis.target.format);
      highest = std::min(highest, k - options.headroom_bits);
    }
  }
  return highest < *advice.highest_log2 ? std::optional(highest) : std::nullopt;
}

}  // namespace

void complete(Recommendation& advice, const Analysis& analysis, const frames::Selection& selection,
              const underflow::RecommendOptions& options, const replay::LogSeries& series) {
  const bool no_scale = needs_no_scale(analysis, advice);
  if (!no_scale) advice.scales = scale_evidence(analysis, advice);
  if (advice.static_log2) put_static(advice, analysis);
  if (!no_scale) advice.highest_if_half_log2 = highest_if_half(advice, analysis, options);
  if (!no_scale) advice.dynamic = dynamic_advice(analysis, advice, series);
  advice.ranks = rank_sum(analysis, advice, selection);
  advice.per_layer = per_layer(analysis, advice, options);
  advice.keep_in_fp32 = keep_in_fp32(analysis, advice, options);
  advice.footprint = footprint(analysis);
}

}  // namespace halfscope::analyzers::recommend
