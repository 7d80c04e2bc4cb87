// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_ranks.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace halfscope::analyzers::readers::console {
namespace {

using frames::PrintingRanks;
using Lengths = std::map<std::uint64_t, std::uint64_t>;

constexpr std::size_t kMessagesThatTell = 3;  // as long each, or multiples of it, by no chance
constexpr std::uint64_t kMessagesOfOne = 12;  // none right behind its like: by no chance
constexpr double kMostMessages = 0.8;  // where lines are torn or missing, of these the length tells

/// The shortest of the most frequent ones.
std::uint64_t usual_of(const Lengths& lengths) {
  const auto by_times = [](const auto& a, const auto& b) { return a.second < b.second; };
  return std::max_element(lengths.begin(), lengths.end(), by_times)->first;
}

}  // namespace

/// Whether the line is of another step than the one before, or another entry.
bool MessageGroups::progresses(const ConsoleLine& line) {
  const auto moves = [](std::optional<std::int64_t>& last, std::int64_t now) {
    return std::exchange(last, now) != now;
  };
  if (line.periodic) return moves(step_, line.periodic->steps);
  if (line.scalars.step) return moves(step_, *line.scalars.step);
  if (line.bar) return moves(bar_, line.bar->done);
  return line.scalars.loss.has_value();
}

void MessageGroups::line(const ConsoleLine& line) {
  lines_ += line.torn ? 0 : 1;
  progress_ += progresses(line) ? 1 : 0;
  std::erase_if(open_, [&](const MessageGroup& group) {
    const bool over = progress_ - group.progress > kMostLate || lines_ - group.lines > kMostLines;
    if (over) ended_(group);
    return over;
  });
}

MessageGroup& MessageGroups::take(const Overflow& overflow) {
  auto at = std::ranges::find(open_, overflow, &MessageGroup::message);
  if (at == open_.end()) {
    if (open_.size() == kMostOpen) {
      ended_(open_.front());
      open_.erase(open_.begin());
    }
    open_.push_back({.message = overflow, .progress = progress_, .lines = lines_});
    at = std::prev(open_.end());
  }
  ++at->count;
  at->placed = false;
  return *at;
}

void MessageGroups::end_all() {
  for (const MessageGroup& group : open_) ended_(group);
  open_.clear();
}

void MessageGroups::place_all() {
  for (MessageGroup& group : open_) group.placed = true;
}

void RankGroups::take(const Overflow& overflow) {
  if (overflow.rank || overflow.of_named || overflow.confirms) return;
  if (scaler_.value_or(overflow.scaler) != overflow.scaler) return;
  scaler_ = overflow.scaler;
  ++messages_;
  repeated_ |= last_ == overflow;
  last_ = overflow;
  open_.take(overflow);
}

void RankGroups::line(const ConsoleLine& line) {
  last_.reset();
  torn_ |= line.torn;
  open_.line(line);
}

void RankGroups::add(const MessageGroup& group) {
  const Scales scales = group.scales();
  if (lengths_.size() < 10'000 || lengths_.contains(scales)) ++lengths_[scales][group.count];
}

std::set<Scales> RankGroups::uneven(std::uint64_t ranks) const {
  std::set<Scales> uneven;
  for (const auto& [scales, lengths] : lengths_) {
    if (lengths.size() != 1 || lengths.begin()->first != ranks) uneven.insert(scales);
  }
  return uneven;
}

/// Of the messages that name a scale.
bool RankGroups::is_lowest(const Scales& scales) const {
  const auto lowest = lengths_.upper_bound({-1, -1});
  return lowest != lengths_.end() && lowest->first == scales;
}

/// Whether no message stands right behind its like, of many, or most messages come once. That of
/// the lowest scale comes as often as it likes.
bool RankGroups::one_prints() const {
  if (!repeated_ && messages_ >= kMessagesOfOne) return true;
  const bool apart = lengths_.size() >= kMessagesThatTell;
  std::size_t once = 0;
  for (const auto& [scales, lengths] : lengths_) {
    once += usual_of(lengths) == 1 && !(apart && is_lowest(scales)) ? 1 : 0;
  }
  return 2 * once > lengths_.size() - (apart ? 1 : 0);
}

/// Whether most messages stand in groups of so many, or multiples of it.
bool RankGroups::are_multiples(std::uint64_t length) const {
  double messages = 0, in_multiples = 0;
  for (const auto& [scales, lengths] : lengths_) {
    for (const auto& [of, times] : lengths) {
      const auto all = static_cast<double>(of) * static_cast<double>(times);
      messages += all;
      if (of % length == 0) in_multiples += all;
    }
  }
  return in_multiples >= kMostMessages * messages;
}

PrintingRanks RankGroups::found() {
  open_.end_all();
  // Each rank prints a message without a scale, whatever else one of them prints of the step.
  if (lengths_.size() > 1) lengths_.erase({-1, -1});
  if (lengths_.empty() || (one_prints() && !torn_)) return {};
  std::uint64_t divisor = 0, longest = 2;
  Lengths each;  // the usual length of each message: one of many may be repeated at the minimum
  for (const auto& [scales, lengths] : lengths_) {
    ++each[usual_of(lengths)];
    for (const auto& [length, times] : lengths) divisor = std::gcd(divisor, length);
    const bool counts = lengths_.size() == 1 || !is_lowest(scales);
    if (counts) longest = std::max(longest, lengths.rbegin()->first);
  }
  const std::uint64_t usual = usual_of(each);
  // A divisor that is no group's own length may come of lines that were lost.
  const bool tell = lengths_.size() >= kMessagesThatTell && !torn_ && usual == divisor;
  if (divisor > 1) return {.ranks = divisor, .certain = tell};
  some_torn_ = usual > 1 && each.at(usual) >= kMessagesThatTell && are_multiples(usual);
  return {.ranks = some_torn_ ? usual : longest, .certain = false};
}

}  // namespace halfscope::analyzers::readers::console
