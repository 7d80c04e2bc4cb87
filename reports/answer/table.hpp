// SPDX-License-Identifier: Apache-2.0
// A table of an answer, as data: terminal, page and Markdown draw it.
#pragma once

#include <optional>
#include <string>
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
};

struct Table {
  Evidence section = Evidence::advice;
  std::string title;
  std::string note = {};  ///< what one needs to know to read it; may be empty
  std::vector<std::string> headings = {};
  std::vector<Row> rows = {};  ///< worst or first first

  bool empty() const { return rows.empty(); }
};

}  // namespace halfscope::reports::answer
