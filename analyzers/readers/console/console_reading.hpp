// SPDX-License-Identifier: Apache-2.0
// Reads the lines of a console log, in order.
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

/// How a terminal wrapped the lines of a text into rows. A row is full if it is as wide as the
/// widest row. A row after a row that is not full begins a line.
struct Wrapping {
  std::size_t columns = 0;                        ///< width of a full row; 0: no line is wrapped
  std::unordered_set<std::uint64_t> starts = {};  ///< hashes of the beginnings of lines

  /// Returns true if `next` continues `row`: `row` is full, and no line begins as `next` does.
  bool goes_on(std::string_view row, std::string_view next) const;
};

/// Returns the next row of a text, valid until the next call; empty after the last row.
using NextRow = std::function<std::optional<std::string_view>()>;
/// Returns the wrapping of a text. Lines are wrapped if some rows have more data when they are
/// joined. `rows` starts again at the first row; it is called once or twice.
Wrapping wrapping_of(const std::function<NextRow()>& rows);

/// Returns the wrapping of a file's text.
Wrapping wrapping_in(const log::OpenPath& file);

/// Called for each result with the number of its line, from 1. `cut` is true if the line has no
/// end. Returns false to stop.
using SeeLine = std::function<bool(const ConsoleLine& line, std::uint64_t number, bool cut)>;
/// Calls `see` for each part of each line of a file, in order: once for each of several overflow
/// messages, otherwise once, with an empty ConsoleLine if the part has no data. Calls may come from
/// any thread but never overlap. Rows of a wrapped line are joined. progress, before, in_all: as
/// for TextLines. pattern: as for LineReader; if not null, blocks and tables are not read.
void for_each_console_line(const log::OpenPath& file, const Wrapping& wrapping, const SeeLine& see,
                           const frames::Progress& progress = {}, std::uint64_t before = 0,
                           std::uint64_t in_all = 0, const lines::Pattern* pattern = nullptr);

/// Calls `see` for each part of a line. Parts are separated by carriage returns, with which
/// progress bars overwrite a line, and by NUL bytes, which file systems write after a crash. A part
/// is skipped if it ends in a number that NUL bytes may have cut.
void for_each_part(std::string_view line, const std::function<void(std::string_view part)>& see);

}  // namespace halfscope::analyzers::readers::console
