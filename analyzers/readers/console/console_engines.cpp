// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_engines.hpp"

#include <cstdlib>
#include <utility>

namespace halfscope::analyzers::readers::console {

std::optional<std::size_t> EngineSplit::fitting(double attempted) const {
  std::optional<std::size_t> same, grown;
  for (std::size_t i = 0; i < kEngines; ++i) {
    if (!scale_[i]) continue;
    // Of two at one scale the one that waits.
    if (*scale_[i] == attempted && (!same || i != last_)) same = i;
    if (*scale_[i] < attempted && (!grown || *scale_[*grown] < *scale_[i])) grown = i;
  }
  if (same) return same;
  for (std::size_t i = 0; i < kEngines; ++i) {
    if (!scale_[i]) return i;
  }
  return grown;
}

std::size_t EngineSplit::of(const Overflow& overflow) {
  if (!overflow.attempted || !overflow.next) return last_;
  const std::size_t engine = fitting(*overflow.attempted).value_or(last_);
  if (engine != last_ && scale_[engine] == overflow.attempted && scale_[0] != scale_[1]) {
    ++returns_;
  }
  scale_[engine] = overflow.next;
  return last_ = engine;
}

std::size_t EngineSplit::of(const Periodic& counter) {
  place_ = step_ == counter.steps ? (place_ + 1) % kEngines : 0;
  step_ = counter.steps;
  return place_;
}

void EngineSurvey::take(const Overflow& overflow) {
  if (!overflow.attempted || !overflow.next || overflow.of_named) return;
  // The scale of one engine falls by its messages alone.
  if (overflow.rank && single_ && *overflow.attempted < *single_) ++impossible_;
  single_ = overflow.next;
  const std::size_t engine = split_.of(overflow);
  for (auto& since : since_) ++since[engine];
  if (!rank_) rank_ = overflow.rank;
  if (!rank_ || rank_ != overflow.rank) return;
  const bool falls = *overflow.next < *overflow.attempted;
  if (falls && pair_ == overflow && !paired()) pairs_.insert(*overflow.attempted);
  pair_ = overflow;
}

void EngineSurvey::take(const Periodic& counter, std::optional<double> learning_rate) {
  if (!counter.skipped || counter.of_interval) return;
  if (before_ && before_->steps == counter.steps &&
      (before_->skipped != counter.skipped || rate_before_ != learning_rate)) {
    ++differ_;
  }
  before_ = counter;
  rate_before_ = learning_rate;
  const std::size_t engine = split_.of(counter);
  const std::int64_t more = *counter.skipped - std::exchange(skipped_[engine], *counter.skipped);
  for (std::size_t scale = 0; scale < kEngines; ++scale) {
    off_[engine][scale] += std::abs(more - std::exchange(since_[engine][scale], 0));
  }
}

bool EngineSurvey::two() const {
  return differ_ >= 2 || (impossible_ >= 2 && split_.returns() >= 2);
}

bool EngineSurvey::swapped() const { return off_[0][1] + off_[1][0] < off_[0][0] + off_[1][1]; }

}  // namespace halfscope::analyzers::readers::console
