// SPDX-License-Identifier: Apache-2.0
// Lines that a terminal broke into rows of one width, as in text copied from a screen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_set>

namespace halfscope::analyzers::readers::console {

/// How a text's lines are wrapped. A row is full if it is as wide as the widest; one that follows a
/// row that is not full begins a line.
struct Wrapping {
  std::size_t columns = 0;                        ///< 0: lines are not wrapped
  std::unordered_set<std::uint64_t> starts = {};  ///< how rows begin that begin a line

  /// Whether a row goes on in the next: it is full, and no line begins as that one does.
  bool goes_on(std::string_view row, std::string_view next) const;
};

/// Returns the next row of a text, without its end; empty after the last one. A row stays until the
/// next call.
using NextRow = std::function<std::optional<std::string_view>()>;
/// Lines are wrapped where some rows say more together than each for itself. `rows` begins to give
/// the rows of a text: it is called once or twice.
Wrapping wrapping_of(const std::function<NextRow()>& rows);

}  // namespace halfscope::analyzers::readers::console
