// SPDX-License-Identifier: Apache-2.0
// Transformer Engine's statistics of tensors quantised to FP8 or FP4, over all ranks.
#pragma once

#include <cstdint>

#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/statistics/te_printed.hpp"

namespace halfscope::analyzers::readers::statistics {

inline constexpr int kLastDigit = -4;  ///< exponent of the last digit that {:.4f} prints

/// Returns the contradiction that makes a number unusable; null if there is none.
const common::Contradiction* wrong_with(frames::QuantisedStatistic statistic, double value);

/// The worst values of each tensor and step over the ranks: the largest underflows, overflows, mse
/// and scale_inv_max, and the least scale_inv_min.
class QuantisedRanks {
 public:
  /// Adds the series of quantised tensors of a file, which must be sorted.
  void add(PrintedFile&& file, const Steps& steps);
  /// Reports the selected series.
  void report(const Steps& steps, const frames::Selection& selection, const frames::Visitor& visit,
              const std::string& log, frames::Notes& notes);
  bool empty() const { return none_; }

 private:
  void drop_crossed(const Steps& steps, const std::string& log, frames::Notes& notes);

  PrintedFile all_;
  bool none_ = true, first_ = true;
};

}  // namespace halfscope::analyzers::readers::statistics
