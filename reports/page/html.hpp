// SPDX-License-Identifier: Apache-2.0
// HTML of the answer's sentences, captions and sections, and sortable tables: every heading is a
// button; cells have their exact value in data-v.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/underflow/underflow.hpp"
#include "reports/answer/captions.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::page {

struct Cell {
  std::string html;
  std::optional<double> key = std::nullopt;  ///< sort key; nullopt: sorted by text
  std::string title = "";                    ///< tooltip, as plain text
  bool muted = false;
};

struct Row {
  std::vector<Cell> cells;  ///< the first cell is the row's name
  bool marked = false;
  std::optional<std::size_t> chooses = std::nullopt;  ///< index of the tensor that its name selects
};

/// Returns a number for data-v, with only as many digits as sorting needs: a page has many numbers.
std::string sort_key(double value);

/// Returns a log's name as HTML that can be broken at separators, but not inside words.
std::string breakable_name(std::string_view name);

/// Returns a table in a scrolling region. `name` is the region's accessible name. Long tables show
/// their first rows, with a button for all. At most kMostTensors rows are written; `left_out` is
/// the number of rows that the caller omitted, `command` the command that prints all.
std::string data_table(std::string_view name, const std::vector<std::string>& headings,
                       const std::vector<Row>& rows, std::size_t left_out = 0,
                       std::string_view command = "analyze LOG --json FILE");

/// Returns only the table element. Unless `scripts`, headings are no buttons.
std::string bare_table(const std::vector<std::string>& headings, std::span<const Row> rows,
                       std::string_view id = "", bool scripts = true);

std::vector<Row> rows_of(const answer::Table& table);

/// Returns a table of the answer, with its title and note; all rows unless the page has scripts.
std::string table_html(const answer::Table& table, bool scripts = true);

/// Returns title, sentences as a list, and tables; an empty string for an empty section.
std::string section_html(const answer::Section& section, bool scripts = true);

/// Returns a list with one item per sentence; an empty string for no sentences.
std::string sentences_html(const std::vector<std::string>& sentences);

/// Returns the text of a caption without its title.
std::string note_html(const answer::Caption& caption);
/// Returns a chart below its caption. `more` is further attributes of the figure element.
std::string chart_html(const answer::Caption& caption, std::string_view chart,
                       std::string_view more = "");

/// Returns one block per log. The page shows the block of the selected log.
std::string per_log(const analyzers::underflow::Analysis& analysis,
                    const std::function<std::string(std::size_t log)>& block);

/// Returns the escaped sentence. Names are code elements that can be broken at separators.
std::string marked_html(std::string_view sentence);

}  // namespace halfscope::reports::page
