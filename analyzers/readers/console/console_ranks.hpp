// SPDX-License-Identifier: Apache-2.0
// Groups of equal messages of a skipped step, which several ranks print into one log.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "analyzers/readers/console/console_lines.hpp"

namespace halfscope::analyzers::readers::console {

/// The scales before and after a message's step; -1 if it has none.
using Scales = std::pair<double, double>;

/// Equal messages that may be of one step, even if other lines stand between them.
struct MessageGroup {
  Overflow message;
  std::uint64_t count = 0;
  bool placed = false;  ///< a line with a step has come since the last message
  // Before the first message: the number of lines with a new step or entry, and of all lines.
  std::uint64_t progress = 0, lines = 0;

  Scales scales() const { return {message.attempted.value_or(-1), message.next.value_or(-1)}; }
};

/// Groups the messages of a log whose lines come in order. A rank may print its message late. A
/// group ends after four lines with a new step or entry, or after sixteen lines of any kind: an
/// equal message then belongs to another step. Used in both readings of a log, so that both see the
/// same groups.
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
  bool progresses(const ConsoleLine& line);

  std::function<void(const MessageGroup&)> ended_;
  std::vector<MessageGroup> open_;
  std::uint64_t progress_ = 0, lines_ = 0;
  std::optional<std::int64_t> step_, bar_;  // the last ones printed
};

}  // namespace halfscope::analyzers::readers::console
