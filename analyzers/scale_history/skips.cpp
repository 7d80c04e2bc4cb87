// SPDX-License-Identifier: Apache-2.0
// Skipped steps: their number, at the least and at the most, and the loss scales
// at which they were skipped, as far as a log shows them.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <optional>

#include "analyzers/scale_history/scale_rules.hpp"

namespace halfscope::analyzers::scale_history {
namespace {

/// The most clean steps between two doublings, where lines show several
/// doublings in few steps. A scale that is at once where the run began was set
/// anew.
std::optional<double> window_at_most(const TimelineFacts& facts) {
  constexpr double kMostAtOnce = 3;  // doublings between two lines that are surely growth
  std::optional<double> window;
  const ScaleChange* before = nullptr;
  for (const ScaleChange& change : facts.changes) {
    if (!is_rise(change) || !change.by) continue;
    const double doublings = halvings_between(change.to, std::max(change.from, 0.0));
    if (doublings > kMostAtOnce && change.to == facts.scale_first) {
      before = nullptr;
      continue;
    }
    const auto narrow = [&](std::int64_t after, double times) {
      const auto steps = static_cast<double>(*change.by) - static_cast<double>(after) - 1;
      if (times >= 2) window = std::min(window.value_or(steps), steps / (times - 1));
    };
    narrow(change.after, doublings);
    if (before != nullptr)
      narrow(before->after, doublings + halvings_between(before->to, before->from));
    before = &change;
  }
  return window;
}

/// The scale was halved as often as it doubled, and as often as it came down.
/// Each doubling needs `window` clean steps, the first one perhaps some before
/// the first line.
std::uint64_t most_halvings(const TimelineFacts& facts, double window) {
  const double down = halvings_between(*facts.scale_first, *facts.scale_last);
  const double steps = static_cast<double>(facts.steps_at_least) + window - 1 + down * window;
  return static_cast<std::uint64_t>(std::max(0.0, steps / (window + 1)));
}

/// The most skipped steps that leave the scale, if only its falls show skipped
/// steps: any at a floor; else, with a hysteresis of 2, the first one at the
/// start and after each growth.
std::uint64_t hidden_at_most(const TimelineFacts& facts) {
  const bool at_floor = std::ranges::any_of(facts.changes, [&](const ScaleChange& change) {
    return is_fall(change) && may_be_floor(change.to, facts);
  });
  if (at_floor) return facts.steps_at_least;
  return 1 + static_cast<std::uint64_t>(std::ranges::count_if(facts.changes, is_rise));
}

}  // namespace

void set_halvings(TimelineFacts& facts) {
  double all = 0;
  std::uint64_t around = 0, hidden = 0;
  for (const ScaleChange& change : facts.changes) {
    if (!is_fall(change) || !(change.to > 0)) continue;
    all += halvings_between(change.from, change.to);
    around += static_cast<std::uint64_t>(change.by.value_or(change.after) - change.after);
  }
  const auto seen = static_cast<std::uint64_t>(all);
  facts.halvings = {seen, std::max(around, seen)};
  // Between lines that show no fall each skipped step needs one at which the
  // scale grew again.
  for (std::size_t i = 1; i < facts.scales.size(); ++i) {
    hidden += static_cast<std::uint64_t>(facts.scales[i].step - facts.scales[i - 1].step) / 2;
  }
  const bool positive = facts.scale_first.value_or(0) > 0 && facts.scale_last.value_or(0) > 0;
  if (facts.numbered || hidden == 0 || !positive) return;
  const bool usual = window_at_most(facts).value_or(kLeastWindow) >= kLeastWindow;
  const std::uint64_t most =
      std::min(most_halvings(facts, usual ? kLeastWindow : 1), seen + hidden);
  facts.halvings.high = std::max(facts.halvings.high, most);
  if (usual) facts.window_taken = kLeastWindow;
}

Interval TimelineFacts::skipped_bounds() const {
  const std::uint64_t most = attempts.value_or(std::numeric_limits<std::uint64_t>::max());
  return skips_at_least ? Interval(skipped_in_all.low, std::max(most, skipped_in_all.high))
                        : skipped_in_all;
}

bool TimelineFacts::many_skipped() const {
  const std::uint64_t least = skips_told ? skipped_in_all.low : halvings.low;
  return attempts && least >= kMany && more_than_few(least, *attempts);
}

bool TimelineFacts::few_skipped() const {
  const std::uint64_t hidden = skips_told && skips_at_least ? hidden_at_most(*this) : 0;
  const std::uint64_t most = (skips_told ? skipped_in_all : halvings).high + hidden;
  return (most < kMany && 2 * most <= steps_at_least) || !more_than_few(most, steps_at_least);
}

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
