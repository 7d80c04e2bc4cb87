// SPDX-License-Identifier: Apache-2.0
// How many processes print each message of a skipped step into one log, where none says which it
// is.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/console/console_lines.hpp"

namespace halfscope::analyzers::readers::console {

/// What a message reduces the scale from and to; -1: it does not say.
using Scales = std::pair<double, double>;

/// Equal messages that may be of one step, whatever stands between them.
struct MessageGroup {
  Overflow message;
  std::uint64_t count = 0;
  bool placed = false;  ///< a line with a step has come since the last of them
  // How many lines came before the first message: lines with a step or an entry, and all lines.
  std::uint64_t progress = 0, lines = 0;

  Scales scales() const { return {message.attempted.value_or(-1), message.next.value_or(-1)}; }
};

/// Groups the messages of a log whose lines come in order. A rank may print its message late. A
/// group ends after four lines with a new step or entry, or after sixteen lines of any kind: an
/// equal message then belongs to another step. Used by RankGroups in the first reading and by
/// ConsoleSteps in the second, so that both see the same groups.
class MessageGroups {
 public:
  /// `ended` is called for each group when it ends.
  explicit MessageGroups(std::function<void(const MessageGroup&)> ended)
      : ended_(std::move(ended)) {}

  /// Takes a line without a message.
  void line(const ConsoleLine& line);
  /// Takes a message. Returns its group, which is valid until the next call.
  MessageGroup& take(const Overflow& overflow);
  /// Ends all groups. The caller does so after the last line.
  void end_all();
  /// Marks all open groups as placed. ConsoleSteps calls it when a line has a step.
  void place_all();

 private:
  static constexpr std::uint64_t kMostLate = 4, kMostLines = 16;
  static constexpr std::size_t kMostOpen = 64;

  bool progresses(const ConsoleLine& line);

  std::function<void(const MessageGroup&)> ended_;
  std::vector<MessageGroup> open_;
  std::uint64_t progress_ = 0, lines_ = 0;
  std::optional<std::int64_t> step_, bar_;  // of the last line that has one
};

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

  void add(const MessageGroup& group);
  bool one_prints() const;
  bool is_lowest(const Scales& scales) const;
  bool are_multiples(std::uint64_t length) const;

  MessageGroups open_{[this](const MessageGroup& group) { add(group); }};
  std::optional<int> scaler_;          // Apex: whose messages are taken
  std::map<Scales, Lengths> lengths_;  // by message
  std::uint64_t messages_ = 0;
  std::optional<Overflow> last_;  // where no other line stands behind it
  bool repeated_ = false;         // a message right behind its like
  bool torn_ = false;             // a line, by that of another process
  bool some_torn_ = false;
};

}  // namespace halfscope::analyzers::readers::console
