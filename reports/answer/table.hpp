// SPDX-License-Identifier: Apache-2.0
// A table as data, which terminal, page and Markdown draw.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/answer/finding.hpp"

namespace halfscope::reports::answer {

struct Cell {
  std::string text;  ///< may have marks (marks.hpp)
  /// Number that the column is sorted by; empty in columns of text.
  std::optional<double> key = {};
  std::string more = {};  ///< text that the page shows on hover
  bool muted = false;     ///< shown in grey: zero, or no value
};

struct Row {
  std::vector<Cell> cells;
  bool marked = false;  ///< the advised row, or the run itself
  bool part = false;    ///< has details of the row before it
};

/// Most rows of a table.
inline constexpr std::size_t kMostRows = 1000;

/// Command without "halfscope" that writes the tables of a recommendation completely.
inline constexpr std::string_view kRecommendJson = "recommend LOG --json FILE";

struct Table {
  Evidence section = Evidence::advice;
  std::string title;
  std::string note = {};  ///< how to read the table; empty if that needs no words
  std::vector<std::string> headings = {};
  std::vector<Row> rows = {};  ///< in the order of importance
  std::size_t left_out = 0;    ///< number of rows that are not in `rows`
  /// Command without "halfscope" that writes all rows.
  std::string_view all_by = "analyze LOG --json FILE";
  bool whole = false;      ///< true if a terminal shows all rows
  std::size_t narrow = 0;  ///< number of columns that a terminal shows; 0 for all

  bool empty() const { return rows.empty(); }
  /// Returns true if the column has numbers.
  bool is_number(std::size_t column) const;
};

/// Returns that `rows` more rows are not shown, and which commands write all. `commands` is
/// inserted unchanged, with the caller's marks.
std::string left_out_text(std::size_t rows, std::string_view commands);

}  // namespace halfscope::reports::answer
