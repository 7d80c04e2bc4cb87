// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_rows.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/readers/console/console_lines.hpp"

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

/// The rows of a text, one by one.
class Rows {
 public:
  Rows(std::string_view text, const Leave& leave) : text_(text), leave_(&leave) {}
  std::optional<std::string_view> next() {
    if (at_ >= text_.size()) return std::nullopt;
    const std::size_t end = std::min(text_.find('\n', at_), text_.size());
    std::string_view row = text_.substr(at_, end - at_);
    if (row.ends_with('\r')) row.remove_suffix(1);
    at_ = end + 1;
    if (*leave_ && at_ - left_ >= kBytesALeave) {
      (*leave_)(left_, at_);
      left_ = at_;
    }
    return row;
  }

 private:
  static constexpr std::size_t kBytesALeave = std::size_t{1} << 22;

  std::string_view text_;
  const Leave* leave_;
  std::size_t at_ = 0, left_ = 0;
};

/// The most columns of a row; 0 where the text cannot be that of a screen.
std::size_t widest(std::string_view text, const Leave& leave) {
  std::size_t most = 0;
  for (Rows rows(text, leave); const auto row = rows.next();) {
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

bool is_power_of_two(double ratio) {
  int exponent = 0;
  return std::frexp(ratio, &exponent) == 0.5;
}

/// Whether scales are as they mostly are: powers of two, or at least halved by one.
bool is_likely(const ConsoleLine& line) {
  if (!line.overflow || !line.overflow->next || !(*line.overflow->next > 0)) return false;
  return is_power_of_two(line.overflow->attempted.value_or(1) / *line.overflow->next);
}

/// Whether a row and those that may continue it say more together than each for itself.
bool say_more_together(std::string_view row, Rows rest, const Wrapping& wrapping) {
  const ConsoleLine first = console_line(row);
  int apart = facts_in(first);
  std::string line(row);
  std::string_view last = row;
  for (std::size_t i = 1; i < kMostRows; ++i) {
    const auto next = rest.next();
    if (!next || !wrapping.goes_on(last, *next)) break;
    apart += facts_in(console_line(*next));
    line += *next;
    last = *next;
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

Wrapping wrapping_of(std::string_view text, const Leave& leave) {
  Wrapping found;
  found.columns = widest(text, leave);
  if (found.columns < kLeastColumns) return {};
  struct Full {
    std::string_view row;
    Rows rest;
  };
  std::vector<Full> full;
  bool begins = true;
  for (Rows rows(text, leave); const auto row = rows.next();) {
    if (begins) found.starts.insert(shape_of(*row));
    begins = row->size() < found.columns || columns_of(*row) < found.columns;
    if (!begins && full.size() < kMostLooks) full.push_back({*row, rows});
  }
  bool seems = false;
  for (const Full& one : full) {
    Rows rest = one.rest;
    const auto next = rest.next();
    if (!next || !found.goes_on(one.row, *next)) continue;
    found.certain = say_more_together(one.row, one.rest, found);
    if (found.certain) return found;
    if (!may_be_one_number(one.row, *next) || !console_line(one.row).any()) continue;
    // Lines of one form may all be of one length, and followed by a number.
    seems = seems || next->find_first_not_of("0123456789.") == std::string_view::npos ||
            shape_of(one.row) != shape_of(full.front().row);
  }
  return seems ? found : Wrapping();
}

}  // namespace halfscope::analyzers::readers::console
