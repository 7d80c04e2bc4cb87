// SPDX-License-Identifier: Apache-2.0
// What Transformer Engine measured of tensors that it quantised to FP8 or FP4, over all ranks.
#pragma once

#include <cstdint>

#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/statistics/te_printed.hpp"

namespace halfscope::analyzers::readers::statistics {

inline constexpr int kLastDigit = -4;  ///< {:.4f}

/// What is wrong with a number: it is not used then. Null where nothing is.
const common::Contradiction* wrong_with(frames::QuantisedStatistic statistic, double value);

/// Of each tensor and step the worst over the ranks: the largest share, error and factor, and the
/// least factor.
class QuantisedRanks {
 public:
  /// The sorted series of a file; takes those of quantised tensors.
  void add(PrintedFile&& file, const Steps& steps);
  /// Tells what is selected.
  void tell(const Steps& steps, const frames::Selection& selection, const frames::Visitor& visit,
            const std::string& log, frames::Notes& notes);
  bool empty() const { return none_; }

 private:
  void drop_crossed(const Steps& steps, const std::string& log, frames::Notes& notes);

  PrintedFile all_;
  bool none_ = true, first_ = true;
};

}  // namespace halfscope::analyzers::readers::statistics
