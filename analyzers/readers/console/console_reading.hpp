// SPDX-License-Identifier: Apache-2.0
// The lines of a console log, in order, with what each says.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_set>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/console/console_lines.hpp"
#include "halfscope/log/open_file.hpp"

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

/// Of a file.
Wrapping wrapping_in(const log::OpenPath& file);

/// Calls `see` for the messages and scalars of each line of a file, in order, with the number of
/// the line; for a line without any, once with an empty ConsoleLine. `cut`: in the last line, which
/// has no end. Where `see` returns false, reading ends soon. Rows that a terminal made of one line
/// are joined. Lines are read by all threads while `see` is called by one. pattern: as for
/// LineReader; rows are lines then.
using SeeLine = std::function<bool(const ConsoleLine& line, std::uint64_t number, bool cut)>;
void for_each_console_line(const log::OpenPath& file, const Wrapping& wrapping, const SeeLine& see,
                           const frames::Progress& progress = {}, std::uint64_t before = 0,
                           std::uint64_t in_all = 0, const lines::Pattern* pattern = nullptr);

/// The parts of a line that progress bars overwrite, after a carriage return, and those between NUL
/// bytes, which file systems leave after a crash. A part is left out whose last number NUL bytes
/// may have cut.
void for_each_part(std::string_view line, const std::function<void(std::string_view part)>& see);

}  // namespace halfscope::analyzers::readers::console
