// SPDX-License-Identifier: Apache-2.0
// Which equal messages of a skipped step may be of one step: each of several ranks prints one, and
// some print theirs late.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "analyzers/readers/console/console_lines.hpp"

namespace halfscope::analyzers::readers::console {

/// What a message reduces the scale from and to; -1: it does not say.
using Scales = std::pair<double, double>;
inline Scales scales_of(const Overflow& overflow) {
  return {overflow.attempted.value_or(-1), overflow.next.value_or(-1)};
}

/// Equal messages that may be of one step, whatever stands between them.
struct MessageGroup {
  Overflow message;
  std::uint64_t count = 0;
  bool placed = false;  ///< a line with a step has come since the last of them
  // How many lines came before the first message: lines with a step or an entry, and all lines.
  std::uint64_t progress = 0, lines = 0;
};

/// Groups the messages of a log whose lines come in order. A rank may print its message late. A
/// group ends after four lines with a new step or entry, or after sixteen lines of any kind: an
/// equal message then belongs to another step. Used by RankGroups in the first reading and by
/// ConsoleSteps in the second, so that both see the same groups.
class MessageGroups {
 public:
  using Ended = std::function<void(const MessageGroup&)>;

  /// Takes a line without a message, and calls `ended` for each group that it ends.
  void line(const ConsoleLine& line, const Ended& ended);
  /// Takes a message. Returns its group, which is valid until the next call. Calls `ended` for a
  /// group that must end because too many are open.
  MessageGroup& take(const Overflow& overflow, const Ended& ended);
  /// Ends all groups. The caller does so after the last line.
  void end_all(const Ended& ended);
  /// Marks all open groups as placed. ConsoleSteps calls it when a line has a step.
  void place_all();

 private:
  static constexpr std::uint64_t kMostLate = 4, kMostLines = 16;
  static constexpr std::size_t kMostOpen = 64;

  bool progresses(const ConsoleLine& line);

  std::vector<MessageGroup> open_;
  std::uint64_t progress_ = 0, lines_ = 0;
  std::optional<std::int64_t> step_, bar_;  // of the last line that has one
};

}  // namespace halfscope::analyzers::readers::console
