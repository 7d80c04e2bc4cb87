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

/// Equal messages, whatever stands between them.
struct MessageGroup {
  Overflow message;
  std::uint64_t count = 0;
  bool placed = false;  ///< a line that says a step came since the last of them
  // Lines before the first of them: those that tell progress, and all.
  std::uint64_t progress = 0, lines = 0;
};

/// Takes a log's lines in order. A group ends when the log has gone so far that a rank can hardly
/// be as late: by four lines that tell progress, or sixteen of any kind. An equal message is then
/// of another step.
class MessageGroups {
 public:
  using Ended = std::function<void(const MessageGroup&)>;

  /// A line without a message; `ended` is told the groups that end with it.
  void line(const ConsoleLine& line, const Ended& ended);
  /// Returns the message's group, valid until the next call.
  MessageGroup& take(const Overflow& overflow, const Ended& ended);
  /// After the last line.
  void end_all(const Ended& ended);
  /// Lines told a step for all messages so far.
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
