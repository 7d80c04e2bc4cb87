// SPDX-License-Identifier: Apache-2.0
#include "analyzers/scale_history/skip_episodes.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

namespace halfscope::analyzers::scale_history {
namespace {

constexpr std::int64_t kWithoutEnd = std::numeric_limits<std::int64_t>::max();

/// Of steps of which some were skipped, whoever skips halving the scale, or leaving it: the last
/// one of them that halved it left at most the scale after all of them.
std::optional<SkipEpisode> episode_of(const frames::SkippedSteps& range) {
  if (!range.scale_to || !frames::usable_scale(2 * *range.scale_to)) return std::nullopt;
  const double least = 2 * *range.scale_to;
  const double from = range.scale_from.value_or(least);
  return SkipEpisode{least, frames::usable_scale(from) ? std::max(from, least) : least, range.first,
                     range.last};
}

using Steps = std::deque<log::StepScalars>;

/// The loss scale told of the step `by` steps after steps[i].
std::optional<double> scale_beside(const Steps& steps, std::size_t i, int by) {
  const std::size_t at = i + static_cast<std::size_t>(by);
  const bool beside = at < steps.size() && steps[at].step == steps[i].step + by;
  return beside ? steps[at].loss_scale : std::nullopt;
}

/// The scale that steps[i] was skipped at: as told, unless the steps beside it show that it was
/// none of this step. Entries without steps tell no more than what the scale became.
std::optional<double> scale_of_skip(const Steps& steps, std::size_t i, bool numbered) {
  const auto at = steps[i].loss_scale, after = scale_beside(steps, i, 1);
  if (numbered || !at) return after ? std::optional(2 * *after) : std::nullopt;
  const auto before = scale_beside(steps, i, -1);
  const bool told_late = before == 2 * *at && !steps[i - 1].found_inf.value_or(false);
  if (told_late) return before;  // once it was halved
  if (!after || *after == *at || *after * 2 == *at) return at;
  // Less is another run's.
  return *after > *at ? std::optional(2 * *after) : std::nullopt;
}

/// The steps whose loss is NaN or infinite, ascending: skipped, they tell nothing of gradients.
std::vector<std::int64_t> steps_without_loss(const Steps& steps) {
  std::vector<std::int64_t> broken;
  for (const log::StepScalars& s : steps) {
    if (s.loss && !std::isfinite(*s.loss)) broken.push_back(s.step);
  }
  return broken;
}

bool holds_any(const SkipEpisode& skip, const std::vector<std::int64_t>& steps) {
  const auto at = std::ranges::lower_bound(steps, skip.first);
  return at != steps.end() && *at <= skip.last.value_or(kWithoutEnd);
}

std::vector<SkipEpisode> skips_of(const Steps& steps, const TimelineFacts& facts) {
  std::vector<SkipEpisode> skips;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].found_inf.value_or(false)) continue;
    const auto scale = scale_of_skip(steps, i, facts.numbered);
    if (scale && frames::usable_scale(*scale)) {
      skips.push_back({*scale, *scale, steps[i].step, steps[i].step});
    }
  }
  for (const frames::SkippedSteps& range : facts.ranges) {
    if (const auto skip = episode_of(range)) skips.push_back(*skip);
  }
  if (!facts.skips.empty()) return skips;
  for (const ScaleChange& change : facts.changes) {  // the scale alone tells of them
    if (change.to * 2 != change.from || !frames::usable_scale(change.from)) continue;
    const auto last = change.by ? std::optional(*change.by - 1) : std::nullopt;
    skips.push_back({change.from, change.from, change.after, last});
  }
  return skips;
}

}  // namespace

std::vector<SkipEpisode> skip_episodes(const underflow::LogFindings& log,
                                       const TimelineFacts& facts) {
  std::vector<SkipEpisode> skips = skips_of(log.scalars, facts);
  std::ranges::stable_sort(skips, {}, &SkipEpisode::first);
  const std::vector<std::int64_t> broken = steps_without_loss(log.scalars);
  std::vector<SkipEpisode> episodes;
  for (const SkipEpisode& skip : skips) {
    if (holds_any(skip, broken)) continue;
    SkipEpisode* const before = episodes.empty() ? nullptr : &episodes.back();
    const bool goes_on = before != nullptr && before->last && skip.first <= *before->last + 1 &&
                         skip.most <= before->least;
    if (!goes_on) {
      episodes.push_back(skip);
      continue;
    }
    const double most = before->most;
    *before = skip;
    before->most = most;
  }
  return episodes;
}

}  // namespace halfscope::analyzers::scale_history
