// SPDX-License-Identifier: Apache-2.0
// What a console log has, before its lines are given to steps: a first reading.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "analyzers/frames/source.hpp"
#include "analyzers/readers/console/console_groups.hpp"
#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/console/console_reading.hpp"

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

Survey survey_of(const log::OpenPath& file, const std::optional<std::uint64_t>& ranks,
                 const lines::Pattern* pattern = nullptr);

}  // namespace halfscope::analyzers::readers::console
