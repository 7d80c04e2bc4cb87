// SPDX-License-Identifier: Apache-2.0
#include "analyzers/replay/step_series_parts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analyzers/overflow/overflow.hpp"
#include "analyzers/replay/replay_loop.hpp"

namespace halfscope::analyzers::replay {
namespace {

/// The steps [first, end) of a series, all without finite gradients.
struct Streak {
  std::size_t first = 0, end = 0;
  double least = kInfinity, most = 0;  ///< their loss scales
};

bool failed(const StepSeries& series, std::size_t at, Streak& streak) {
  const auto retried = series.retried.find(at);
  const std::size_t n = retried == series.retried.end() ? 1 : retried->second.size();
  for (std::size_t i = 0; i < n; ++i) {
    const AttemptMagnitudes& seen =
        retried == series.retried.end() ? series.seen[at] : retried->second[i];
    if (std::isfinite(seen.max_abs) || seen.overflow_from == 0) return false;
  }
  const AttemptMagnitudes& last =
      retried == series.retried.end() ? series.seen[at] : retried->second.back();
  // A failure at an unknown scale, or at scale 0, is no evidence.
  if (std::isfinite(last.overflow_from)) streak.least = std::min(streak.least, last.overflow_from);
  const double first = series.seen[at].overflow_from;
  if (std::isfinite(first)) streak.most = std::max(streak.most, first);
  return true;
}

/// Steps farther away than this are no evidence of the gradients here.
constexpr std::size_t kFarthest = 1000;

/// Returns the largest magnitude of up to three finite steps on each side; 0 if there are none.
double near(const StepSeries& series, const Streak& streak) {
  double largest = 0;
  const auto take = [&](std::size_t at, int& left) {
    // The largest gradient is unknown if gradients are partly recorded.
    if (!std::isfinite(series.seen[at].max_abs) || series.seen[at].partial) return;
    largest = std::max(largest, series.seen[at].max_abs);
    --left;
  };
  const std::size_t begin = streak.first - std::min(streak.first, kFarthest);
  const std::size_t end = std::min(series.seen.size(), streak.end + kFarthest);
  int before = 3, after = 3;
  for (std::size_t i = streak.first; i > begin && before > 0; --i) take(i - 1, before);
  for (std::size_t i = streak.end; i < end && after > 0; ++i) take(i, after);
  return largest;
}

}  // namespace

void find_no_cure(StepSeries& series) {
  for (std::size_t i = 0; i < series.seen.size(); ++i) {
    Streak streak{i, i};
    while (streak.end < series.seen.size() && failed(series, streak.end, streak)) ++streak.end;
    if (streak.end == i) continue;
    i = streak.end - 1;
    const double lowered = std::log2(streak.most) - std::log2(streak.least);
    if (!(streak.most > 0) || !(lowered >= overflow::kLowered)) continue;
    const double largest = near(series, streak);
    const double limit = std::log2(to_double(boundaries(kBinary16).overflow));
    const double reaches = largest > 0 ? std::log2(largest) : limit;
    if (!(limit - reaches - std::log2(streak.least) >= overflow::kOutOfReach)) continue;
    for (std::size_t at = streak.first; at < streak.end; ++at) {
      series.seen[at].overflow_from = 0;
      const auto retried = series.retried.find(at);
      if (retried == series.retried.end()) continue;
      for (AttemptMagnitudes& seen : retried->second) seen.overflow_from = 0;
    }
  }
}

void find_casts(StepSeries& series, const MaybeCast& maybe) {
  for (std::size_t i = 0; i < maybe.size();) {
    std::size_t end = i + 1;
    while (end < maybe.size() && maybe[end].first == maybe[end - 1].first + 1) ++end;
    double most = 0;
    for (std::size_t k = i; k < end; ++k) most = std::max(most, maybe[k].second);
    const double largest = near(series, {maybe[i].first, maybe[end - 1].first + 1});
    const bool close = reaches(largest * std::exp2(overflow::kNearLimit), most, kOverflow);
    for (; i < end; ++i) {
      if (close) series.seen[maybe[i].first].overflow_from = maybe[i].second;
    }
  }
}

}  // namespace halfscope::analyzers::replay
