// SPDX-License-Identifier: Apache-2.0
// Tables that people sort: every heading is a button, cells carry their exact value in data-v.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/answer/table.hpp"

namespace halfscope::reports::page {

struct Cell {
  std::string html;
  std::optional<double> key = std::nullopt;  ///< what it sorts by; its text where empty
  std::string title = "";                    ///< told on hover; plain text
  bool muted = false;
};

struct Row {
  std::vector<Cell> cells;  ///< the first is the row's name
  bool marked = false;
  std::optional<std::size_t> chooses = std::nullopt;  ///< its name is a button for this tensor
};

/// A number for data-v: enough digits to sort by, not all of them, for a page has many.
std::string sort_key(double value);

/// A name from a log that a narrow column may break at its separators, not inside its words.
std::string breakable_name(std::string_view name);

/// name: what a region that scrolls is called, for people who do not see it. Long tables show their
/// first rows until all are asked for. At most kMostTensors rows are written; left_out: how many
/// more the caller has left out already; command: what writes all (left_out_note()).
std::string data_table(std::string_view name, const std::vector<std::string>& headings,
                       const std::vector<Row>& rows, std::size_t left_out = 0,
                       std::string_view command = "analyze LOG --json FILE");

/// The table alone.
std::string bare_table(const std::vector<std::string>& headings, std::span<const Row> rows,
                       std::string_view id = "");

std::vector<Row> rows_of(const answer::Table& table);

/// A table of the answer, with its title and note.
std::string table_html(const answer::Table& table);

}  // namespace halfscope::reports::page
