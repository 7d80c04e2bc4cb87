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
  /// Counts a contradiction. `line` is counted from 1; 0 if the file is not read by lines. `found`
  /// names the tensor, the step and the values; the note shows it for the first line only.
  void add(const Contradiction& kind, std::uint64_t line, std::string found = {});
  /// Adds one note for each kind that was found.
  void tell(const std::string& file, frames::Notes& notes) const;
  /// Returns the texts of these notes, without the file's name.
  std::vector<std::string> texts() const;

 private:
  struct Row {
    const Contradiction* kind;
    std::uint64_t count, line;  ///< contradictions so far; the first line with one
    std::string found;
  };
  std::vector<Row> rows_;
};

}  // namespace halfscope::analyzers::readers::common
