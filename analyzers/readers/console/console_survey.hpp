// SPDX-License-Identifier: Apache-2.0
// The first reading of a console log: which lines have its steps, and who prints them.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/console/console_ranks.hpp"
#include "analyzers/readers/console/console_reading.hpp"

namespace halfscope::analyzers::readers::console {

/// The source of the steps of training.
enum class StepSource : std::uint8_t {
  none,
  lines,  ///< lines that print how many steps are done
  bar     ///< a progress bar, if no line has steps
};

/// The steps that lines of one form print.
struct PrintedSteps {
  std::uint64_t lines = 0;  ///< how many
  std::uint64_t line = 0;   ///< number of the last one
  std::optional<std::int64_t> first, last;
  std::int64_t apart = 1;  ///< the most steps between two such lines
};

/// Returns a name that a bar keeps while its numbers change: its total and the text before it
/// without numbers. Training goes on with one bar, while others come and go.
std::string bar_name(const Bar& bar);

/// Returns true if a bar begins anew: it is behind the `done` steps it had. Ranks that print one
/// bar may be two steps apart.
bool begins_anew(const Bar& bar, std::int64_t done);

struct Survey {
  StepSource source = StepSource::none;
  PrintedSteps steps;
  std::optional<std::size_t> form;          ///< Periodic::form of training; empty: Periodic::alone
  std::string bar;                          ///< bar_name() of training's bar; empty: none
  frames::Tool tool = frames::Tool::other;  ///< that prints the lines; of several the last value
  frames::PrintingRanks ranks;
  bool torn_runs = false;   ///< most groups of equal messages are whole, or --ranks is given
  std::set<Scales> uneven;  ///< messages with other groups, if some lines were torn or lost
  bool two_engines = false;
  bool swapped = false;  ///< the first message is of the engine whose counter comes second
  bool paired = false;   ///< equal messages of one rank follow each other at two scales or more
  std::uint64_t overflows = 0;  ///< messages of a skipped step
  /// The rank with most messages; of several the first to print so many. Empty: unnamed ranks.
  std::optional<int> rank;
  bool names_scales = false;      ///< some message has a scale
  bool counts_skips = false;      ///< some line counts skipped steps
  bool counts_intervals = false;  ///< some line counts one or more since the line before
  /// Lines have steps and applied updates, one update a step: gradients are not accumulated.
  bool updates_each_step = false;
  bool cut = false;  ///< the last line has no end
  Wrapping wrapping;

  /// Returns true if a line has steps of training.
  bool counts(const Periodic& periodic) const { return periodic.alone || periodic.form == form; }
};

/// Surveys a file. `ranks`: --ranks. pattern: as for console_line().
Survey survey_of(const log::OpenPath& file, const std::optional<std::uint64_t>& ranks,
                 const lines::Pattern* pattern = nullptr);

}  // namespace halfscope::analyzers::readers::console
