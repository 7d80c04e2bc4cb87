// SPDX-License-Identifier: Apache-2.0
// What in a log cannot be true together, or at all: counted by kind, and told in one note each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::readers::common {

/// A kind of contradiction, of which there is one object each: parts of a note's sentence.
struct Contradiction {
  std::string_view finding;  ///< "max is below min"
  std::string_view outcome;  ///< what is made of it: "neither is used"
};

/// Those of one file. Told, the above is "FILE: max is below min: 3 times, first in line 7 ('w',
/// step 2: max=1, min=2); neither is used".
class Contradictions {
 public:
  /// `line`: from 1; 0 where a file is not read by lines. `found`: the tensor and step, and what is
  /// written there.
  void add(const Contradiction& kind, std::uint64_t line, std::string found = {});
  void tell(const std::string& file, frames::Notes& notes) const;
  /// Returns what tell() adds to the notes, without the file's name.
  std::vector<std::string> texts() const;

 private:
  struct Row {
    const Contradiction* kind;
    std::uint64_t count, line;  // of the first
    std::string found;
  };
  std::vector<Row> rows_;
};

}  // namespace halfscope::analyzers::readers::common
