// SPDX-License-Identifier: Apache-2.0
#include "analyzers/scale_history/skip_episodes.hpp"

#include <algorithm>
#include <cmath>
#include <deque>

#include "analyzers/scale_history/scale_rules.hpp"

namespace halfscope::analyzers::scale_history {
namespace {

using Steps = std::deque<log::StepScalars>;

/// The scale of the step `by` steps after steps[i].
std::optional<double> scale_beside(const Steps& steps, std::size_t i, int by) {
  const std::size_t at = i + static_cast<std::size_t>(by);
  const bool beside = at < steps.size() && steps[at].step == steps[i].step + by;
  return beside ? steps[at].loss_scale : std::nullopt;
}

/// The scale that steps[i] was skipped at: its own, unless the steps beside it
/// show that this is another step's. Entries without steps have the scale after
/// the skipped step.
std::optional<double> scale_of_skip(const Steps& steps, std::size_t i, bool numbered) {
  const auto at = steps[i].loss_scale, after = scale_beside(steps, i, 1);
  if (numbered || !at) return after ? std::optional(2 * *after) : std::nullopt;
  const auto before = scale_beside(steps, i, -1);
  const bool printed_late = before == 2 * *at && !steps[i - 1].found_inf.value_or(false);
  if (printed_late) return before;
  if (!after || *after == *at || *after * 2 == *at) return at;
  return *after > *at ? std::optional(2 * *after) : std::nullopt;  // less is another run's
}

/// Returns true if the loss of one of the steps is NaN or infinite: their
/// gradients prove nothing.
bool has_broken_loss(const Steps& steps, const SkipEpisode& skip) {
  auto at = std::ranges::lower_bound(steps, skip.first, {}, &log::StepScalars::step);
  for (; at != steps.end() && at->step <= skip.last.value_or(kAfterAll); ++at) {
    if (at->loss && !std::isfinite(*at->loss)) return true;
  }
  return false;
}

std::vector<SkipEpisode> skips_of(const Steps& steps, const TimelineFacts& facts) {
  std::vector<SkipEpisode> skips;
  const auto add = [&](double least, double most, std::int64_t first,
                       std::optional<std::int64_t> last) {
    if (!frames::usable_scale(least)) return;
    skips.push_back(
        {least, frames::usable_scale(most) ? std::max(most, least) : least, first, last});
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].found_inf.value_or(false)) continue;
    const double scale = scale_of_skip(steps, i, facts.numbered).value_or(0);
    add(scale, scale, steps[i].step, steps[i].step);
  }
  // Each skipped step halves the scale or leaves it: the last one that halved
  // it was at twice the scale after the range, or at less.
  for (const frames::SkippedSteps& range : facts.ranges) {
    const double least = 2 * range.scale_to.value_or(0);
    add(least, range.scale_from.value_or(least), range.first, range.last);
  }
  if (!facts.skips.empty()) return skips;
  for (const ScaleChange& change : facts.changes) {  // the scale alone shows skipped steps
    if (change.to * 2 != change.from) continue;
    const auto last = change.by ? std::optional(*change.by - 1) : std::nullopt;
    add(change.from, change.from, change.after, last);
  }
  return skips;
}

}  // namespace

std::vector<SkipEpisode> skip_episodes(const underflow::LogFindings& log,
                                       const TimelineFacts& facts) {
  std::vector<SkipEpisode> skips = skips_of(log.scalars, facts);
  std::ranges::stable_sort(skips, {}, &SkipEpisode::first);
  std::erase_if(skips, [&](const SkipEpisode& s) { return has_broken_loss(log.scalars, s); });
  std::vector<SkipEpisode> episodes;
  for (SkipEpisode& skip : skips) {
    const bool goes_on = !episodes.empty() && episodes.back().last &&
                         skip.first <= *episodes.back().last + 1 &&
                         skip.most <= episodes.back().least;
    if (goes_on) {
      skip.most = episodes.back().most;
      episodes.pop_back();
    }
    episodes.push_back(skip);
  }
  return episodes;
}

}  // namespace halfscope::analyzers::scale_history
