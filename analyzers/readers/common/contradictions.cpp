// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/contradictions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace halfscope::analyzers::readers::common {

void Contradictions::add(const Contradiction& kind, std::uint64_t line, std::string found) {
  const auto known = std::find_if(rows_.begin(), rows_.end(),
                                  [&kind](const Row& row) { return row.kind == &kind; });
  if (known == rows_.end()) {
    rows_.push_back({&kind, 1, line, std::move(found)});
    return;
  }
  ++known->count;
  if (line >= known->line) return;  // calls are not always in the order of the lines
  known->line = line;
  known->found = std::move(found);
}

void Contradictions::tell(const std::string& file, frames::Notes& notes) const {
  for (const std::string& text : texts()) notes.add(file + ": " + text);
}

std::vector<std::string> Contradictions::texts() const {
  std::vector<std::string> all;
  for (const Row& row : rows_) {
    const bool once = row.count == 1;
    std::string times = once ? "once" : fmt::format("{} times", row.count);
    if (row.line > 0) {
      times += fmt::format(", {}in line {}", once ? "" : "first ", row.line);
    } else if (!once) {
      times += ", the first";
    }
    if (!row.found.empty()) times += " (" + row.found + ")";
    all.push_back(fmt::format("{}: {}; {}", row.kind->finding, times, row.kind->outcome));
  }
  return all;
}

void FilteredLosses::take(std::int64_t step, std::optional<double>& loss,
                          std::optional<double> gradient_norm) {
  if (loss != 0 || !gradient_norm || std::isfinite(*gradient_norm)) return;
  if (count_++ == 0) first_ = step;
  loss = std::numeric_limits<double>::quiet_NaN();
}

std::string FilteredLosses::text(const char* at) const {
  if (count_ == 0) return "";
  return fmt::format(
      "the loss is 0 in {} {} whose gradient norm is NaN or infinite, first at {} {}: the Trainer "
      "logs 0 where the loss of every step is NaN or infinite (logging_nan_inf_filter)",
      count_, count_ == 1 ? "entry" : "entries", at, first_);
}

}  // namespace halfscope::analyzers::readers::common
