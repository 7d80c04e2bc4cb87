// SPDX-License-Identifier: Apache-2.0
// Tables with a line of column names, followed by lines of values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace halfscope::analyzers::readers::lines {

/// Reads tables. Remembers the columns of the last one. Console readers pass all lines in order.
class Columns {
 public:
  /// If `line` is a row of values of the last table, writes "name: value, " for each column into
  /// `pairs` and returns true. Otherwise returns false, and `pairs` is unspecified. Remembers
  /// `line` if it names a step or an epoch, and a loss: "| EPOCH | BATCH | LOSS |".
  bool read_row(std::string_view line, std::string& pairs);

 private:
  bool remember(std::string_view line);
  bool write(std::string_view line, std::string& pairs) const;

  std::vector<std::string> names_;  // column names; empty outside tables
  bool bars_ = false;               // true if '|' separates columns, false if blanks do
  std::uint64_t others_ = 0;        // lines since the last row or line of names
};

}  // namespace halfscope::analyzers::readers::lines
