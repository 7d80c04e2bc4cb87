// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/lines/columns.hpp"

#include <algorithm>
#include <cstddef>

#include "analyzers/readers/lines/names.hpp"
#include "analyzers/readers/lines/pairs.hpp"

namespace halfscope::analyzers::readers::lines {
namespace {

constexpr std::string_view kBlanks = " \t\r";

std::string_view trimmed_cell(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

/// Returns the cells of a line, separated by '|' if `bars`, else by blanks. Text before the first
/// '|', such as a logger's prefix, is not a cell.
std::vector<std::string_view> cells_of(std::string_view line, bool bars) {
  constexpr std::size_t kMostCells = 256;
  std::vector<std::string_view> cells;
  if (bars) line.remove_prefix(std::min(line.find('|'), line.size()));
  if (line.starts_with('|')) line.remove_prefix(1);
  while (!line.empty() && cells.size() < kMostCells) {
    const std::size_t end =
        std::min(bars ? line.find('|') : line.find_first_of(kBlanks), line.size());
    const std::string_view cell = trimmed_cell(line.substr(0, end));
    if (!cell.empty() || (bars && end < line.size())) cells.push_back(cell);
    line.remove_prefix(std::min(line.size(), end + 1));
  }
  return cells;
}

bool begins_with_figure(std::string_view text) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

/// Returns true for the losses in YOLO's tables until 2022, whose names lack the word "loss".
bool is_yolo_loss(std::string_view name) { return name == "box" || name == "obj" || name == "cls"; }

bool is_loss(Meaning meaning) { return meaning == Meaning::loss || meaning == Meaning::loss_part; }

}  // namespace

bool Columns::remember(std::string_view line) {
  const std::size_t bar = line.find('|');
  const bool bars = bar != std::string_view::npos;
  const std::string_view table = bars ? line.substr(bar) : line;
  // A fast check: most other lines have one of these characters, and lines of names have none.
  if (line.size() > 4096 || table.find(':') != std::string_view::npos ||
      table.find('=') != std::string_view::npos ||
      table.find_first_of("[{") != std::string_view::npos) {
    return false;
  }
  if (begins_with_figure(trimmed_cell(line)) && !bars) return false;
  const std::vector<std::string_view> cells = cells_of(line, bars);
  bool step = false, loss = false;
  for (const std::string_view cell : cells) {
    if (begins_with_figure(cell)) return false;
    const Meaning meaning = meaning_of(cell).meaning;
    step |= counts_steps(meaning);
    loss |= is_loss(meaning) || is_yolo_loss(cell);
  }
  if (cells.size() < 2 || !step || !loss) return false;
  names_.clear();
  for (const std::string_view cell : cells) {
    names_.emplace_back(std::string(cell) + (is_yolo_loss(cell) ? "_loss" : ""));
  }
  bars_ = bars;
  others_ = 0;
  return true;
}

bool Columns::write(std::string_view line, std::string& pairs) const {
  const std::vector<std::string_view> cells = cells_of(line, bars_);
  if (cells.size() < names_.size()) return false;
  bool loss = false;
  pairs.clear();
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const Meaning meaning = meaning_of(names_[i]).meaning;
    if (counts_steps(meaning) && !begins_with_figure(cells[i])) return false;
    loss |= is_loss(meaning) && printed_number(cells[i]);
    pairs.append(names_[i]).append(": ").append(cells[i]).append(", ");
  }
  return loss;
}

bool Columns::read_row(std::string_view line, std::string& pairs) {
  constexpr std::uint64_t kLongestGap = 64;  // other lines between two rows of a table
  if (!names_.empty() && write(line, pairs)) {
    others_ = 0;
    return true;
  }
  if (!remember(line) && ++others_ > kLongestGap) names_.clear();
  return false;
}

}  // namespace halfscope::analyzers::readers::lines
