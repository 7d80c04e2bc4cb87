// SPDX-License-Identifier: Apache-2.0
// Contradictions in a log, counted by kind, with one note for each kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::readers::common {

/// A kind of contradiction, with the parts of its note. Each kind is one object.
struct Contradiction {
  std::string_view finding;  ///< "max is below min"
  std::string_view outcome;  ///< the consequence: "neither is used"
};

/// The contradictions of one file. A note is "FILE: max is below min: 3 times, first in line 7
/// ('w', step 2: max=1, min=2); neither is used".
class Contradictions {
 public:
  /// `line` is from 1, or 0 if the file is not read by lines. `found` has the tensor, the step and
  /// the values there.
  void add(const Contradiction& kind, std::uint64_t line, std::string found = {});
  void tell(const std::string& file, frames::Notes& notes) const;
  /// Returns the same texts without the file's name.
  std::vector<std::string> texts() const;

 private:
  struct Row {
    const Contradiction* kind;
    std::uint64_t count, line;  ///< the line is that of the first
    std::string found;
  };
  std::vector<Row> rows_;
};

}  // namespace halfscope::analyzers::readers::common
