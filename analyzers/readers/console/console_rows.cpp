// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_rows.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/readers/console/console_lines.hpp"
#include "halfscope/table/boundary.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

constexpr std::size_t kLeastColumns = 40, kMostColumns = 400;  // of terminals
constexpr std::size_t kMostRows = 16;                          // of one line
constexpr std::size_t kMostLooks = 256;

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// Characters of UTF-8; each is taken as one column.
std::size_t columns_of(std::string_view row) {
  return static_cast<std::size_t>(std::ranges::count_if(
      row, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

/// How a row begins: its first characters, with all digits alike and all letters alike. As many as
/// part Megatron-LM's " iteration      10/" from the end of its line: " iterations:   1 |".
std::uint64_t shape_of(std::string_view row) {
  std::uint64_t shape = 0xCBF29CE484222325;  // FNV-1a
  for (const char c : row.substr(0, 12)) {
    const auto byte = static_cast<unsigned char>(c);
    const unsigned char alike = is_digit(c) ? '0' : std::isalpha(byte) != 0 ? 'a' : byte;
    shape = (shape ^ alike) * 0x100000001B3;
  }
  return shape;
}

/// The most columns of a row; 0 where the text cannot be that of a screen.
std::size_t widest(const NextRow& next) {
  std::size_t most = 0;
  while (const auto row = next()) {
    if (row->size() <= most) continue;
    if (row->size() > 4 * kMostColumns) return 0;
    most = std::max(most, columns_of(*row));
    // What drives a terminal is not on its screen.
    if (most > kMostColumns || row->find_first_of("\r\x1b") != std::string_view::npos) return 0;
  }
  return most;
}

/// How much a line says.
int facts_in(const ConsoleLine& line) {
  int facts = line.at_minimum ? 1 : 0;
  const auto add = [&](bool is_there) { facts += is_there ? 1 : 0; };
  if (line.overflow) {
    ++facts;
    add(line.overflow->attempted.has_value());
    add(line.overflow->next.has_value());
  }
  add(line.iteration.has_value());
  add(line.periodic.has_value());
  add(line.periodic && line.periodic->skipped);
  const LineScalars& s = line.scalars;
  add(s.loss.has_value());
  add(s.learning_rate.has_value());
  add(s.gradient_norm.has_value());
  add(s.loss_scale.has_value());
  add(s.nan_iterations.has_value());
  add(s.evaluation_loss.has_value());
  return facts;
}

/// Whether scales are as they mostly are: powers of two, or at least halved by one.
bool is_likely(const ConsoleLine& line) {
  if (!line.overflow || !line.overflow->next || !(*line.overflow->next > 0)) return false;
  return exact_log2(line.overflow->attempted.value_or(1) / *line.overflow->next).has_value();
}

/// A full row and the rows that follow it: together at most as many as one line may have.
using FullRow = std::vector<std::string>;

/// Returns the first full rows of a text. Adds the shapes of rows that begin a line to
/// wrapping.starts.
std::vector<FullRow> full_rows(const NextRow& next, Wrapping& wrapping) {
  std::vector<FullRow> full;
  std::size_t open = 0;  // the first one that more rows may follow
  bool begins = true;
  while (const auto row = next()) {
    if (begins) wrapping.starts.insert(shape_of(*row));
    begins = row->size() < wrapping.columns || columns_of(*row) < wrapping.columns;
    for (std::size_t i = open; i < full.size(); ++i) full[i].emplace_back(*row);
    while (open < full.size() && full[open].size() == kMostRows) ++open;
    if (!begins && full.size() < kMostLooks) full.push_back({std::string(*row)});
  }
  return full;
}

/// Whether a row and those that may continue it say more together than each for itself.
bool say_more_together(const FullRow& rows, const Wrapping& wrapping) {
  const ConsoleLine first = console_line(rows.front());
  int apart = facts_in(first);
  std::string line = rows.front();
  for (std::size_t i = 1; i < rows.size(); ++i) {
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

bool may_be_one_number(std::string_view row, std::string_view next) {
  return !row.empty() && !next.empty() && is_digit(row.back()) &&
         (is_digit(next.front()) || next.front() == '.');
}

Wrapping wrapping_of(const std::function<NextRow()>& rows) {
  Wrapping found;
  found.columns = widest(rows());
  if (found.columns < kLeastColumns) return {};
  const std::vector<FullRow> full = full_rows(rows(), found);
  bool seems = false;
  for (const FullRow& one : full) {
    if (one.size() < 2 || !found.goes_on(one[0], one[1])) continue;
    found.certain = say_more_together(one, found);
    if (found.certain) return found;
    if (!may_be_one_number(one[0], one[1]) || !console_line(one[0]).any()) continue;
    // Lines of one form may all be of one length, and followed by a number.
    seems = seems || one[1].find_first_not_of("0123456789.") == std::string::npos ||
            shape_of(one[0]) != shape_of(full.front().front());
  }
  return seems ? found : Wrapping();
}

Wrapping wrapping_of(std::string_view text) {
  return wrapping_of([text]() -> NextRow {
    return [text, at = std::size_t{0}]() mutable -> std::optional<std::string_view> {
      if (at >= text.size()) return std::nullopt;
      const std::size_t end = std::min(text.find('\n', at), text.size());
      std::string_view row = text.substr(at, end - at);
      if (row.ends_with('\r')) row.remove_suffix(1);
      at = end + 1;
      return row;
    };
  });
}

}  // namespace halfscope::analyzers::readers::console
