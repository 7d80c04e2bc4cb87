// SPDX-License-Identifier: Apache-2.0
// Counts the values that each loss scale flushes, summed over the tensors of a step.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analyzers/replay/step_series.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::replay {

/// Sums histograms step by step; consecutive ones of a step are added before they are classified.
class FlushedSum {
 public:
  explicit FlushedSum(const underflow::Target& target) : target_(target) {}

  void add(const frames::Frame& frame);
  /// Adds zeros that may be flushed values, as they were computed in binary16, to upper bounds.
  void add_perhaps(std::int64_t step, std::uint64_t zeros);
  std::vector<FlushedProfile> finish();

 private:
  void close();

  underflow::Target target_;
  bool open_ = false;
  std::int64_t step_ = 0;  ///< step of `tables_`
  std::vector<underflow::ScaledTable> tables_;
  std::map<std::int64_t, FlushedProfile> steps_;
};

}  // namespace halfscope::analyzers::replay
