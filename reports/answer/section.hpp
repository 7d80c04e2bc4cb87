// SPDX-License-Identifier: Apache-2.0
// Findings, tables and sections as data: the parts of an answer and of its evidence. Strings may
// have marks (text.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace halfscope::reports::answer {

enum class Severity : std::uint8_t {
  breaks,   ///< the run fails, or has a loss that no loss scale prevents
  serious,  ///< a large part of what the run computes is lost
  warning,  ///< something is lost, or will be if the run continues
  note      ///< information; nothing is lost
};
std::string_view name_of(Severity severity);

/// The section with a finding's evidence.
enum class Evidence : std::uint8_t {
  scales,
  timeline,
  updates,
  overflow,
  policies,
  formats,
  recipes,
  quantised,
  ranks,
  reductions,
  weights,
  advice
};
std::string_view name_of(Evidence evidence);  ///< id of the section on the page: "scales", ...

struct Finding {
  Severity severity = Severity::note;
  std::string title;   ///< one sentence, with the most important number
  std::string action;  ///< advice in one or two sentences; empty if there is none
  Evidence evidence = Evidence::scales;
  std::string_view id = {};  ///< its kind, as findings.cpp lists them; empty outside findings()
};

/// Returns the title and the action, separated by a space.
std::string text_of(const Finding& finding);

struct Cell {
  std::string text;  ///< may have marks (text.hpp)
  /// Number that the column is sorted by; empty in columns of text.
  std::optional<double> key = {};
  std::string more = {};  ///< text that the page shows on hover
  bool muted = false;     ///< shown in grey: zero, or no value
};

/// Returns a cell with a count.
Cell count_cell(std::uint64_t count);
/// Returns a cell with the share of a count, whose hover text has both numbers.
Cell share_cell(std::uint64_t count, std::uint64_t of);

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
  /// Adds a row for each element, up to kMostRows rows; the others are counted in `left_out`.
  template <typename Elements, typename ToRow>
  void add_rows(const Elements& elements, const ToRow& row_of) {
    for (const auto& element : elements) {
      if (rows.size() < kMostRows) {
        rows.push_back(row_of(element));
      } else {
        ++left_out;
      }
    }
  }
  /// Returns true if the column has numbers.
  bool is_number(std::size_t column) const;
};

/// Returns that `rows` more rows are not shown, and which commands write all. `commands` is
/// inserted unchanged, with the caller's marks.
std::string left_out_text(std::size_t rows, std::string_view commands);

/// Lines to paste, shown unchanged.
struct PasteLines {
  std::string label;  ///< the file or program to paste them into
  std::string lines;
  std::string note = {};  ///< how to use the lines; empty if that needs no words
};

struct Section {
  std::string title;
  std::vector<std::string> sentences = {};  ///< each is complete without the others
  std::vector<Table> tables = {};           ///< each with at least one row
  std::vector<PasteLines> pastes = {};      ///< shown between sentences and tables

  bool empty() const { return sentences.empty() && tables.empty(); }
  /// Adds a table unless it has no rows.
  void add(Table table) {
    if (!table.empty()) tables.push_back(std::move(table));
  }
};

}  // namespace halfscope::reports::answer
