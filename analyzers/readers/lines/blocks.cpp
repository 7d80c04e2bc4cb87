// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/lines/blocks.hpp"

#include <algorithm>

#include "analyzers/readers/lines/names.hpp"
#include "analyzers/readers/lines/pairs.hpp"

namespace halfscope::analyzers::readers::lines {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(" \t\r") + 1);
}

/// Returns the width of a line's leading blanks, in columns; a tab counts as four.
std::size_t indent_of(std::string_view line) {
  std::size_t columns = 0;
  for (const char c : line) {
    if (c != ' ' && c != '\t') return columns;
    columns += c == '\t' ? 4 : 1;
  }
  return columns;
}

/// The two cells of a table's row.
struct TableRow {
  std::string_view name, value;
};
std::optional<TableRow> table_row(std::string_view line) {
  const std::string_view row = trimmed(line);
  if (row.size() < 5 || row.front() != '|' || row.back() != '|') return std::nullopt;
  const std::size_t bar = row.find('|', 1);
  if (bar + 1 >= row.size() || row.find('|', bar + 1) != row.size() - 1) return std::nullopt;
  return TableRow{trimmed(row.substr(1, bar - 1)),
                  trimmed(row.substr(bar + 1, row.size() - bar - 2))};
}

/// Returns true if a line has a step and no other value of training except an epoch.
bool is_header(std::string_view line) {
  bool step = false;
  for (const Pair& pair : pairs_in(line)) {
    switch (pair.named.meaning) {
      case Meaning::step:
      case Meaning::global_step: step = step || pair.count(); break;
      case Meaning::epoch:
      case Meaning::none: break;
      default: return false;
    }
  }
  return step;
}

bool has_named_pair(std::string_view line) {
  return std::ranges::any_of(pairs_in(line), [](const Pair& pair) { return !pair.name.empty(); });
}

}  // namespace

bool may_begin_block(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return false;
  if (line[begin] == '|') return table_row(line).has_value();
  constexpr std::string_view kSteps[] = {"tep", "TEP", "[batch="};
  return std::ranges::any_of(
      kSteps, [&](std::string_view step) { return line.find(step) != std::string_view::npos; });
}

bool is_in_block(std::string_view first, std::string_view line) {
  if (table_row(first)) return table_row(line).has_value();
  // If a logger's prefix precedes the step, `first` has no indent: require 4 columns, too.
  const bool below = indent_of(line) >= 4 && indent_of(line) > indent_of(first);
  return below && has_named_pair(line) && is_header(first);
}

void add_to_block(std::string_view line, std::string& block) {
  if (const auto row = table_row(line)) {
    block.append(row->name).append(": ").append(row->value);
  } else {
    block.append(line);
  }
  block.append(", ");
}

bool read_block(std::string_view first, const PeekLine& peek, const std::function<void()>& skip,
                std::string& block) {
  constexpr int kLongest = 256;
  if (!may_begin_block(first)) return false;
  auto next = peek();
  if (!next || !is_in_block(first, *next)) return false;
  const std::string begin(first);  // skip() may invalidate `first`
  block.clear();
  add_to_block(begin, block);
  for (int rows = 1; rows < kLongest && next && is_in_block(begin, *next); ++rows) {
    add_to_block(*next, block);
    skip();
    next = peek();
  }
  return true;
}

}  // namespace halfscope::analyzers::readers::lines
