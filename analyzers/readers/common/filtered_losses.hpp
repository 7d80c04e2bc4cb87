// SPDX-License-Identifier: Apache-2.0
// Losses that Hugging Face's Trainer logs as 0 because they are NaN or infinite.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace halfscope::analyzers::readers::common {

/// Replaces such losses, and counts them for a note.
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
