// SPDX-License-Identifier: Apache-2.0
// Assigns messages about skipped steps to steps. Several ranks may print a message of one step.
#include <algorithm>
#include <iterator>
#include <utility>

#include "analyzers/readers/console/console_steps.hpp"

namespace halfscope::analyzers::readers::console {

bool ConsoleSteps::of_other_rank(const Overflow& overflow) {
  if (!overflow.rank) return false;
  const Scales scales{overflow.attempted.value_or(-1), overflow.next.value_or(-1)};
  if (rank_ == overflow.rank) {
    if (scales_of_rank_.size() < kMostScales) scales_of_rank_.insert(scales);
    return false;
  }
  ++of_other_ranks_[of_other_ranks_.size() < kMostScales ? scales : Scales{-1, -1}];
  return true;
}

void ConsoleSteps::take(const Overflow& overflow) {
  if (of_other_rank(overflow)) return;
  if (scaler_.value_or(overflow.scaler) != overflow.scaler) {
    frames::OtherScaler& other = other_scalers_[overflow.scaler];
    other.scaler = overflow.scaler;
    ++other.messages;
    if (overflow.next) other.scale_last = overflow.next;
    return;
  }
  scaler_ = overflow.scaler;
  if (!named_.scale(overflow)) take_message(overflow);
}

/// A message that names no iteration: of every rank, where it does not say of which.
void ConsoleSteps::take_message(const Overflow& overflow) {
  if (survey_.names_scales && overflow.bare) {
    ++bare_;  // of each rank, and mostly of the step of a message that names one
    return;
  }
  if (overflow.confirms && last_ && !last_->confirms && last_->attempted == overflow.attempted) {
    return;
  }
  const bool equal = last_ == overflow;
  const bool same = last_ && overflow.next && !overflow.attempted && equal;
  const bool adjacent = std::exchange(adjacent_, true) && equal;
  equal_ = equal ? equal_ + 1 : 0;
  last_ = overflow;
  const bool paired = overflow.rank && survey_.paired;
  const bool another = overflow.rank       ? !paired || equal_ == 0
                       : survey_.by_bursts ? !adjacent
                                           : begins_step(overflow, equal);
  const bool perhaps = paired || (!survey_.ranks.certain && !survey_.torn_runs);
  counted_messages_ |= !overflow.rank;
  pending_count_ += Interval(another ? 1 : 0, another || perhaps ? 1 : 0);
  if (!another) return;
  naming_ += overflow.next.has_value();
  repeated_ += same && !overflow.rank && survey_.ranks.ranks == 1 ? 1 : 0;
  if (pending_count_.low <= kMostHeld) pending_.push_back(overflow);
}

/// Returns true if a message of one of several ranks is surely of a step that no message before it
/// is of. `follows`: the message before is equal.
bool ConsoleSteps::begins_step(const Overflow& overflow, bool follows) {
  const auto equal = [&](const Messages& open) { return open.message == overflow; };
  const auto late = [&](const Messages& open) { return moment_ - open.moment > kMomentsApart; };
  auto at = std::ranges::find_if(open_, equal);
  if (at != open_.end() && late(*at)) {
    end_messages(*at);
    open_.erase(at);
    at = open_.end();
  }
  if (at == open_.end()) {
    ++moment_;
    for (const Messages& open : open_) {
      if (late(open)) end_messages(open);
    }
    std::erase_if(open_, late);
    open_.push_back({overflow, moment_});
    at = std::prev(open_.end());
  } else if (!follows) {
    at->apart = true;
  }
  at->placed = false;
  const std::uint64_t before = at->count++;
  return before == 0 || (survey_.ranks.certain && before % survey_.ranks.ranks == 0);
}

/// Counts equal messages that no more can join: each may be of another step, unless every rank
/// printed one a step.
void ConsoleSteps::end_messages(const Messages& of) {
  if (!survey_.torn_runs) return;
  const std::uint64_t ranks = survey_.ranks.ranks;
  const bool whole = of.count % ranks == 0 && (!of.apart || of.count == ranks);
  const std::uint64_t least = survey_.ranks.certain ? (of.count + ranks - 1) / ranks : 1;
  (of.placed ? perhaps_ : pending_count_.high) += (whole ? of.count / ranks : of.count) - least;
}

}  // namespace halfscope::analyzers::readers::console
