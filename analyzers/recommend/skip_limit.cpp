// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/skip_limit.hpp"

#include <algorithm>
#include <cmath>

#include "analyzers/overflow/overflow_cause.hpp"
#include "analyzers/scale_history/skip_episodes.hpp"

namespace halfscope::analyzers::recommend {

using scale_history::SkipEpisode;

namespace {

/// Returns true if no scale made the gradients of these steps too large. The rule is that of
/// recorded infinities (overflow_cause_gradients.cpp): far lower scales did not help, or a scale of
/// about 1 did not, although other gradients are far below overflow.
bool in_vain(const SkipEpisode& episode, std::optional<double> largest) {
  if (!largest || !(*largest > 0)) return false;
  const double room = std::log2(underflow::infinite_magnitude(episode.least).unscaled() / *largest);
  const double lowered = std::log2(episode.most / episode.least);
  return (room >= overflow::kOutOfReach && lowered >= overflow::kLowered) ||
         (room >= overflow::kFar && episode.least <= 2);
}

Limit limit_of(const scale_history::TimelineFacts& facts, const SkipEpisode& episode) {
  Limit limit;
  limit.log = facts.log;
  limit.name = std::string(log::name_of(log::Role::weight_grad));
  limit.step = episode.last.value_or(episode.first);
  limit.max_abs = underflow::infinite_magnitude(episode.least).unscaled();
  limit.censored = true;
  limit.from_scalars = true;
  limit.skipped_at = episode.least;
  limit.numbered = facts.numbered;
  if (limit.step != episode.first) limit.first_step = episode.first;
  return limit;
}

}  // namespace

std::optional<double> largest_finite(const underflow::Analysis& analysis) {
  std::optional<double> largest;
  for (const underflow::LogFindings& log : analysis.logs) {
    for (const underflow::TensorFindings& t : log.tensors) {
      if (t.loss_scaled) largest = std::max(largest, t.max_abs);
    }
    for (const frames::StepPeak& peak : log.peaks) {
      const bool counts = is_gradient(peak.role) && std::isfinite(peak.max_abs) && peak.max_abs > 0;
      if (counts) largest = std::max(largest, std::optional(peak.max_abs));
    }
  }
  return largest;
}

std::optional<Limit> skip_limit(const underflow::Analysis& analysis,
                                std::optional<double> largest) {
  std::optional<Limit> limit;
  for (const underflow::LogFindings& log : analysis.logs) {
    const auto facts = scale_history::timeline_facts(log);
    if (!facts) continue;
    for (const SkipEpisode& episode : scale_history::skip_episodes(log, *facts)) {
      if (in_vain(episode, largest)) continue;
      const Limit found = limit_of(*facts, episode);
      if (!limit || found.max_abs > limit->max_abs) limit = found;
    }
  }
  return limit;
}

}  // namespace halfscope::analyzers::recommend
