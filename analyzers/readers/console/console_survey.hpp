// SPDX-License-Identifier: Apache-2.0
// What a console log has, before its lines are given to steps: a first reading.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/console/console_groups.hpp"
#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/console/console_rows.hpp"
#include "halfscope/log/open_file.hpp"

namespace halfscope::analyzers::readers::console {

/// What tells steps.
enum class StepSource : std::uint8_t {
  none,
  lines,  ///< that say how many steps are done
  bar     ///< a progress bar, where nothing else does
};

/// A bar by the text before it, without numbers, and its total: training goes on with one bar,
/// while others come and go.
std::string bar_name(const Bar& bar);

struct Survey {
  StepSource steps = StepSource::none;
  frames::Tool tool = frames::Tool::other;  ///< whose lines they are, of several the last one
  frames::PrintingRanks ranks;
  bool torn_runs = false;   ///< some lines are missing: RankGroups::some_torn(), or --ranks
  std::set<Scales> uneven;  ///< messages with torn groups: RankGroups::uneven()
  bool two_engines = false, swapped = false;  ///< EngineSurvey
  std::uint64_t overflows = 0;                ///< messages of them
  std::optional<int>
      rank;  ///< of which most messages are; of several the first; empty: those without a name
  bool paired = false;              ///< PairedMessages
  bool names_scales = false;        ///< some message of an overflow
  bool counts_skips = false;        ///< some line counts skipped steps
  bool cut = false;                 ///< the last line has no end
  bool counts_intervals = false;    ///< some line counts one or more since the line before
  std::optional<std::size_t> form;  ///< Periodic::form of training; empty: lines that say so alone
  std::string bar;                  ///< bar_name() of that of training; empty: none
  std::optional<std::int64_t> first, last;  ///< steps that lines tell
  std::int64_t apart = 1;                   ///< the most steps between two such lines
  Wrapping wrapping;                        ///< of its rows

  /// Whether a line tells steps of training.
  bool counts(const Periodic& periodic) const { return periodic.alone || periodic.form == form; }
};

/// How a file's rows are wrapped.
Wrapping wrapping_in(const log::OpenPath& file);

/// Calls `see` for the messages and scalars of each line of a file, in order, with the number of
/// the line; for a line without any, once with an empty ConsoleLine. `cut`: in the last line, which
/// has no end. Rows that a terminal made of one line are joined. `faults` gets lines that were
/// wrapped or hold NUL bytes. Lines are read by all threads while `see` is called by one.
using SeeLine = std::function<void(const ConsoleLine& line, std::uint64_t number, bool cut)>;
void for_each_console_line(const log::OpenPath& file, const Wrapping& wrapping, const SeeLine& see,
                           const frames::Progress& progress = {}, std::uint64_t before = 0,
                           std::uint64_t in_all = 0, common::Contradictions* faults = nullptr);

/// The parts of a line that progress bars overwrite, after a carriage return, and those between NUL
/// bytes, which file systems leave after a crash. A part is left out whose last number NUL bytes
/// may have cut.
void for_each_part(std::string_view line, const std::function<void(std::string_view part)>& see);

Survey survey_of(const log::OpenPath& file, const std::optional<std::uint64_t>& ranks);

}  // namespace halfscope::analyzers::readers::console
