// SPDX-License-Identifier: Apache-2.0
// Finds lines that a terminal wrapped into rows of one width, as in text copied from a screen.
#include <algorithm>
#include <cctype>
#include <span>
#include <string>
#include <vector>

#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/console/console_reading.hpp"
#include "halfscope/table/boundary.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

constexpr std::size_t kLeastColumns = 40, kMostColumns = 400;  // terminal widths
constexpr std::size_t kMostRows = 16;                          // per line
constexpr std::size_t kMostLooks = 2048;                       // rows that are examined

/// Returns the number of UTF-8 characters in a row. Each counts as one column.
std::size_t columns_of(std::string_view row) {
  return static_cast<std::size_t>(std::ranges::count_if(
      row, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// Returns a hash of a row's first 12 characters, equal for all digits and for all letters. Twelve
/// distinguish Megatron-LM's " iteration      10/" from the end of its line, " iterations:   1 |".
std::uint64_t shape_of(std::string_view row) {
  std::uint64_t shape = 0xCBF29CE484222325;  // FNV-1a
  for (const char c : row.substr(0, 12)) {
    const auto byte = static_cast<unsigned char>(c);
    const int alike = std::isdigit(byte) != 0 ? '0' : std::isalpha(byte) != 0 ? 'a' : byte;
    shape = (shape ^ static_cast<std::uint64_t>(alike)) * 0x100000001B3;
  }
  return shape;
}

/// Returns the width of the widest row; 0 if the text cannot be copied from a screen.
std::size_t widest(const NextRow& next) {
  std::size_t most = 0;
  while (const auto row = next()) {
    if (row->size() <= most) continue;
    if (row->size() > 4 * kMostColumns) return 0;
    most = std::max(most, columns_of(*row));
    // Text copied from a screen has no control characters.
    if (most > kMostColumns || row->find_first_of("\r\x1b") != std::string_view::npos) return 0;
  }
  return most < kLeastColumns ? 0 : most;
}

/// Returns the number of results in a line. whole: scalars count even if the line has no step.
std::ptrdiff_t facts_in(const ConsoleLine& line, bool whole = false) {
  const auto& message = line.overflow;
  const LineScalars& s = whole && line.loose.any() ? line.loose : line.scalars;
  const bool facts[] = {line.at_minimum,
                        line.header.has_value(),
                        line.iteration.has_value(),
                        message.has_value(),
                        message && message->attempted,
                        message && message->next,
                        line.periodic.has_value(),
                        line.periodic && line.periodic->skipped,
                        s.loss.has_value(),
                        s.learning_rate.has_value(),
                        s.gradient_norm.has_value(),
                        s.loss_scale.has_value(),
                        s.nan_iterations.has_value(),
                        s.evaluation_loss.has_value()};
  return std::ranges::count(facts, true);
}

/// Returns true if the old scale in a message, divided by the new one, is a power of two. A missing
/// old scale counts as 1.
bool is_likely(const ConsoleLine& line) {
  if (!line.overflow || !line.overflow->next || !(*line.overflow->next > 0)) return false;
  return exact_log2(line.overflow->attempted.value_or(1) / *line.overflow->next).has_value();
}

/// Returns at most kMostLooks rows, from the first full row on. Adds the hashes of all rows in the
/// text that begin a line to wrapping.starts.
std::vector<std::string> rows_from_full(const NextRow& next, Wrapping& wrapping) {
  std::vector<std::string> rows;
  bool begins = true;
  while (const auto row = next()) {
    if (begins) wrapping.starts.insert(shape_of(*row));
    begins = row->size() < wrapping.columns || columns_of(*row) < wrapping.columns;
    if ((!begins || !rows.empty()) && rows.size() < kMostLooks) rows.emplace_back(*row);
  }
  return rows;
}

/// Returns true if `row` is only the rest of a number at the end of `before`.
bool is_rest_of_number(std::string_view before, std::string_view row) {
  return std::isdigit(static_cast<unsigned char>(before.back())) != 0 &&
         row.find_first_not_of("0123456789.") == std::string_view::npos;
}

/// Returns true if the first row and the rows that may continue it have more results joined than
/// apart, or if the first row ends in a number that the second continues.
bool say_more_together(std::span<const std::string> rows, const Wrapping& wrapping) {
  const ConsoleLine first = console_line(rows.front());
  std::ptrdiff_t apart = facts_in(first, true);
  if (apart > 0 && is_rest_of_number(rows[0], rows[1])) return true;
  std::string line = rows.front();
  for (std::size_t i = 1; i < std::min(rows.size(), kMostRows); ++i) {
    if (!wrapping.goes_on(rows[i - 1], rows[i])) break;
    apart += facts_in(console_line(rows[i]));
    line += rows[i];
    const ConsoleLine joined = console_line(line);
    if (facts_in(joined) > apart || (first.overflow && !is_likely(first) && is_likely(joined))) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool Wrapping::goes_on(std::string_view row, std::string_view next) const {
  return columns > 0 && row.size() >= columns && !next.empty() && columns_of(row) == columns &&
         !starts.contains(shape_of(next));
}

Wrapping wrapping_of(const std::function<NextRow()>& rows) {
  Wrapping found{widest(rows())};
  if (found.columns == 0) return {};
  const std::vector<std::string> full = rows_from_full(rows(), found);
  for (std::size_t i = 0; i + 1 < full.size(); ++i) {
    const auto from = std::span(full).subspan(i);
    if (found.goes_on(from[0], from[1]) && say_more_together(from, found)) return found;
  }
  return {};
}

}  // namespace halfscope::analyzers::readers::console
