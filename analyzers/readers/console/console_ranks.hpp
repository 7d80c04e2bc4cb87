// SPDX-License-Identifier: Apache-2.0
// How many processes print each message of a skipped step into one log, where none says which it
// is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/console/console_groups.hpp"

namespace halfscope::analyzers::readers::console {

/// Takes a log's lines in order. Ranks reduce their scale to the same at the same step, so their
/// messages are equal and near each other. A rank of its own prints equal messages only where the
/// scale grew between them, or is at its minimum: groups of different messages tell ranks.
class RankGroups {
 public:
  void take(const Overflow& overflow);
  /// A line without a message.
  void line(const ConsoleLine& line);
  /// After the last line.
  frames::PrintingRanks found();
  /// Whether that number is told by most groups, and lines of the others were torn or lost.
  bool some_torn() const { return some_torn_; }
  /// Of these, the messages that have a group of another length.
  std::set<Scales> uneven(std::uint64_t ranks) const;

 private:
  using Lengths = std::map<std::uint64_t, std::uint64_t>;  // of groups, and how often
  static constexpr std::size_t kMostScales = 10'000;

  void add(const MessageGroup& group);
  Lengths usual_lengths() const;
  bool one_prints() const;
  std::uint64_t torn_length() const;
  std::uint64_t longest() const;
  bool is_lowest(const Scales& scales) const;

  MessageGroups open_;
  std::optional<int> scaler_;          // Apex: whose messages are taken
  std::map<Scales, Lengths> lengths_;  // by message
  std::uint64_t messages_ = 0;
  std::optional<Overflow> last_;  // where no other line stands behind it
  bool repeated_ = false;         // a message right behind its like
  bool torn_ = false;             // a line, by that of another process
  bool some_torn_ = false;
};

}  // namespace halfscope::analyzers::readers::console
