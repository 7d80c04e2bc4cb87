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

std::uint64_t divisor_of(const Lengths& lengths, std::uint64_t divisor) {
  for (const auto& [length, times] : lengths) divisor = std::gcd(divisor, length);
  return divisor;
}

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

/// The usual length of each message: at its minimum one process prints one message again and again.
RankGroups::Lengths RankGroups::usual_lengths() const {
  Lengths usual;
  for (const auto& [scales, lengths] : lengths_) ++usual[usual_of(lengths)];
  return usual;
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

/// The length of most messages; 1 where too few stand in multiples of it.
std::uint64_t RankGroups::torn_length() const {
  const Lengths each = usual_lengths();
  const std::uint64_t usual = usual_of(each);
  double messages = 0, in_multiples = 0;
  for (const auto& [scales, lengths] : lengths_) {
    for (const auto& [length, times] : lengths) {
      const auto all = static_cast<double>(length) * static_cast<double>(times);
      messages += all;
      if (length % usual == 0) in_multiples += all;
    }
  }
  const bool many = each.at(usual) >= kMessagesThatTell;
  return many && in_multiples >= kMostMessages * messages ? usual : 1;
}

/// Of all messages, but for that of the lowest scale.
std::uint64_t RankGroups::longest() const {
  std::uint64_t longest = 1;
  for (const auto& [scales, lengths] : lengths_) {
    if (lengths_.size() == 1 || !is_lowest(scales))
      longest = std::max(longest, lengths.rbegin()->first);
  }
  return longest;
}

PrintingRanks RankGroups::found() {
  open_.end_all();
  // Each rank prints a message without a scale, whatever else one of them prints of the step.
  if (lengths_.size() > 1) lengths_.erase({-1, -1});
  if (lengths_.empty() || (one_prints() && !torn_)) return {};
  const bool tell = lengths_.size() >= kMessagesThatTell;
  PrintingRanks found{.ranks = 0, .certain = false};
  for (const auto& [scales, lengths] : lengths_) found.ranks = divisor_of(lengths, found.ranks);
  if (found.ranks > 1) {
    // A divisor that is no group's own length may come of lines that were lost.
    found.certain = tell && !torn_ && usual_of(usual_lengths()) == found.ranks;
    return found;
  }
  found.ranks = torn_length();
  some_torn_ = found.ranks > 1;
  if (!some_torn_) found.ranks = std::max<std::uint64_t>(2, longest());
  return found;
}

}  // namespace halfscope::analyzers::readers::console
