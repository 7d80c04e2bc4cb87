// SPDX-License-Identifier: Apache-2.0
// The lines of a console log, in order, with what each says.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/console/console_rows.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::console {

/// How a file's rows are wrapped.
Wrapping wrapping_in(const log::OpenPath& file);

/// Calls `see` for the messages and scalars of each line of a file, in order, with the number of
/// the line; for a line without any, once with an empty ConsoleLine. `cut`: in the last line, which
/// has no end. Rows that a terminal made of one line are joined. `faults` gets lines that were
/// wrapped or hold NUL bytes. Lines are read by all threads while `see` is called by one. pattern:
/// as for console_line(); rows are lines then.
using SeeLine = std::function<void(const ConsoleLine& line, std::uint64_t number, bool cut)>;
void for_each_console_line(const log::OpenPath& file, const Wrapping& wrapping, const SeeLine& see,
                           const frames::Progress& progress = {}, std::uint64_t before = 0,
                           std::uint64_t in_all = 0, common::Contradictions* faults = nullptr,
                           const lines::Pattern* pattern = nullptr);

/// The parts of a line that progress bars overwrite, after a carriage return, and those between NUL
/// bytes, which file systems leave after a crash. A part is left out whose last number NUL bytes
/// may have cut.
void for_each_part(std::string_view line, const std::function<void(std::string_view part)>& see);

}  // namespace halfscope::analyzers::readers::console
