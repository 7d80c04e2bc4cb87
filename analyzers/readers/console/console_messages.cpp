// SPDX-License-Identifier: Apache-2.0
// Assigns messages about skipped steps to steps. Several ranks may print a message of one step.
#include "analyzers/readers/console/console_steps.hpp"

namespace halfscope::analyzers::readers::console {

bool ConsoleSteps::of_other_rank(const Overflow& overflow) {
  if (overflow.of_named || overflow.confirms) return false;
  const Scales scales = scales_of(overflow);
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
  equal_ = equal ? equal_ + 1 : 0;
  last_ = overflow;
  const bool paired = overflow.rank && survey_.paired;
  const bool another = overflow.rank ? !paired || equal_ == 0 : begins_step(overflow);
  const bool perhaps = paired || (!survey_.ranks.certain && !survey_.torn_runs);
  counted_messages_ |= !overflow.rank;
  pending_count_ += Interval(another ? 1 : 0, another || perhaps ? 1 : 0);
  if (!another) return;
  ++begun_;
  naming_ += overflow.next.has_value();
  repeated_ += same && !overflow.rank && survey_.ranks.ranks == 1 ? 1 : 0;
  if (pending_count_.low <= kMostHeld) pending_.push_back(overflow);
}

/// Returns true if a message surely belongs to a new step: no message before it belongs to that
/// step. Called for messages that name no rank.
bool ConsoleSteps::begins_step(const Overflow& overflow) {
  const auto ended = [this](const MessageGroup& group) { end_messages(group); };
  const std::uint64_t before = messages_.take(overflow, ended).count - 1;
  return before == 0 || (survey_.ranks.certain && before % survey_.ranks.ranks == 0);
}

/// Counts equal messages that no more can join: each may be of another step, unless every rank
/// printed one a step.
void ConsoleSteps::end_messages(const MessageGroup& group) {
  const std::uint64_t ranks = survey_.ranks.ranks;
  // What some ranks print of a step may come behind the end of an excerpt.
  if (at_end_ && survey_.cut && survey_.ranks.certain && ranks > 1 && group.count > ranks) {
    perhaps_ += group.count - group.count / ranks;
  }
  if (!survey_.torn_runs) return;
  const bool whole = group.count % ranks == 0 && !survey_.uneven.contains(scales_of(group.message));
  const std::uint64_t most = whole ? group.count / ranks : group.count;
  const std::uint64_t least = survey_.ranks.certain ? (group.count + ranks - 1) / ranks : 1;
  (group.placed ? perhaps_ : pending_count_.high) += most - least;
}

}  // namespace halfscope::analyzers::readers::console
