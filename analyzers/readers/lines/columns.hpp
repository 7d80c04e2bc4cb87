// SPDX-License-Identifier: Apache-2.0
// Tables by columns: a line of names, then lines of values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace halfscope::analyzers::readers::lines {

/// The names of the columns of the last table seen. The console readers give it each line in order.
class Columns {
 public:
  /// If `line` is a row of values below a line of names, puts "name: value, " for each column into
  /// `pairs` and returns true. Remembers `line` if it is a line of names, of which one means a step
  /// or an epoch and one a loss: "Epoch  GPU_mem  box_loss", "| EPOCH | BATCH | LOSS |".
  bool read_row(std::string_view line, std::string& pairs);

 private:
  bool remember(std::string_view line);
  bool write(std::string_view line, std::string& pairs) const;

  std::vector<std::string> names_;  // empty: no table yet
  bool bars_ = false;               // stand between the columns
  std::uint64_t others_ = 0;        // lines since the last row
};

}  // namespace halfscope::analyzers::readers::lines
