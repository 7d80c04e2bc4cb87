// SPDX-License-Identifier: Apache-2.0
// Losses that Hugging Face's Trainer logs as 0 because they are NaN or infinite.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace halfscope::analyzers::readers::common {

/// Counts entries of the Trainer that have such a loss, and makes it NaN.
class FilteredLosses {
 public:
  void take(std::int64_t step, std::optional<double>& loss, std::optional<double> gradient_norm);
  /// A note's text without the file's name; `at` is "step" or "entry". Empty where there is none.
  std::string text(const char* at) const;

 private:
  std::uint64_t count_ = 0;
  std::int64_t first_ = 0;
};

}  // namespace halfscope::analyzers::readers::common
