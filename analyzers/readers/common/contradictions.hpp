// SPDX-License-Identifier: Apache-2.0
// Contradictions in a log, counted by kind, and losses that a log gives as 0 instead of NaN.
#pragma once

#include <cstdint>
#include <optional>
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

/// Replaces losses that Hugging Face's Trainer logs as 0 because they are NaN or infinite, and
/// counts them for a note.
class FilteredLosses {
 public:
  /// Replaces the loss by NaN if it is 0 and the gradient norm is NaN or infinite.
  void take(std::int64_t step, std::optional<double>& loss, std::optional<double> gradient_norm);
  /// Returns the text of a note, without the file's name; empty if no loss was replaced. `at` is
  /// the word for a position in the log: "step" or "entry".
  std::string text(const char* at) const;

 private:
  std::uint64_t count_ = 0;
  std::int64_t first_ = 0;  ///< step or entry of the first replaced loss
};

}  // namespace halfscope::analyzers::readers::common
