// SPDX-License-Identifier: Apache-2.0
// What a console log has, before its lines are given to steps: a first reading.
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

/// What tells steps.
enum class StepSource : std::uint8_t {
  none,
  lines,  ///< that say how many steps are done
  bar     ///< a progress bar, where nothing else does
};

/// The steps that lines of one form tell.
struct ToldSteps {
  std::uint64_t lines = 0;  ///< of the file: parts of one are one
  std::uint64_t line = 0;   ///< the last
  std::optional<std::int64_t> first, last;
  std::int64_t apart = 1;  ///< the most steps between two such lines
};

/// A bar by the text before it, without numbers, and its total: training goes on with one bar,
/// while others come and go.
std::string bar_name(const Bar& bar);

/// Whether a bar begins anew: it stands behind the `done` steps it had. Several ranks may print one
/// bar up to two steps apart, which is no new beginning.
bool begins_anew(const Bar& bar, std::int64_t done);

struct Survey {
  StepSource source = StepSource::none;
  ToldSteps steps;
  std::optional<std::size_t> form;  ///< Periodic::form of training; empty: lines that say so alone
  std::string bar;                  ///< bar_name() of that of training; empty: none
  frames::Tool tool = frames::Tool::other;  ///< whose lines they are, of several the last one
  frames::PrintingRanks ranks;
  bool torn_runs = false;   ///< some lines are missing: RankGroups::some_torn(), or --ranks
  std::set<Scales> uneven;  ///< messages with torn groups: RankGroups::uneven()
  bool two_engines = false, swapped = false;  ///< EngineSurvey
  bool paired = false;                        ///< EngineSurvey, of one engine
  std::uint64_t overflows = 0;                ///< messages of them
  /// Of which most messages are, of several the first to print so many; empty: those without one.
  std::optional<int> rank;
  bool names_scales = false;      ///< some message of an overflow
  bool counts_skips = false;      ///< some line counts skipped steps
  bool counts_intervals = false;  ///< some line counts one or more since the line before
  bool cut = false;               ///< the last line has no end
  Wrapping wrapping;              ///< of its rows

  /// Whether a line tells steps of training.
  bool counts(const Periodic& periodic) const { return periodic.alone || periodic.form == form; }
};

/// Reads a file. `ranks`: how many print each message, where a user says so.
Survey survey_of(const log::OpenPath& file, const std::optional<std::uint64_t>& ranks,
                 const lines::Pattern* pattern = nullptr);

}  // namespace halfscope::analyzers::readers::console
