// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_ranks.hpp"

#include <algorithm>
#include <iterator>

namespace halfscope::analyzers::readers::console {

/// Returns true if the line has another step than the one before, or is another entry.
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
  constexpr std::uint64_t kMostLate = 4, kMostLines = 16;
  lines_ += line.torn ? 0 : 1;
  progress_ += progresses(line) ? 1 : 0;
  std::erase_if(open_, [&](const MessageGroup& group) {
    const bool over = progress_ - group.progress > kMostLate || lines_ - group.lines > kMostLines;
    if (over) ended_(group);
    return over;
  });
}

MessageGroup& MessageGroups::take(const Overflow& overflow) {
  constexpr std::size_t kMostOpen = 64;
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

}  // namespace halfscope::analyzers::readers::console
