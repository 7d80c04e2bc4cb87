// SPDX-License-Identifier: Apache-2.0
// A table of an answer, as data: terminal, page and Markdown draw it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/answer/finding.hpp"

namespace halfscope::reports::answer {

struct Cell {
  std::string text;                ///< with marks (marks.hpp)
  std::optional<double> key = {};  ///< what a column of numbers is sorted by; text has none
  std::string more = {};           ///< what a page shows on hover
  bool muted = false;              ///< nothing to see here: a zero, or no value
};

struct Row {
  std::vector<Cell> cells;
  bool marked = false;  ///< the one that is advised, or what a run did
  bool part = false;    ///< belongs to the row before it
};

/// Most rows of a table: nobody reads more of them one by one.
inline constexpr std::size_t kMostRows = 1000;

/// What writes the tables of a recommendation, after "halfscope".
inline constexpr std::string_view kRecommendJson = "recommend LOG --json FILE";

struct Table {
  Evidence section = Evidence::advice;
  std::string title;
  std::string note = {};  ///< what one needs to know to read it; may be empty
  std::vector<std::string> headings = {};
  std::vector<Row> rows = {};                           ///< worst or first first
  std::size_t left_out = 0;                             ///< further rows
  std::string_view all_by = "analyze LOG --json FILE";  ///< what writes all, after "halfscope"
  bool whole = false;                                   ///< a terminal shows all rows
  std::size_t narrow = 0;  ///< a terminal shows the first columns, so many; 0: all

  bool empty() const { return rows.empty(); }
  /// Whether a column holds numbers.
  bool is_number(std::size_t column) const;
};

/// That a table has more rows than are shown, and what writes all: commands, marked as the caller
/// marks them.
std::string left_out_text(std::size_t rows, std::string_view commands);

}  // namespace halfscope::reports::answer
