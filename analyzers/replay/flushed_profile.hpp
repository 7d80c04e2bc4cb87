// SPDX-License-Identifier: Apache-2.0
// What is flushed at every loss scale, summed over the tensors of a step as they come.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analyzers/replay/step_series.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::replay {

/// Sums tables of one step after the other: tables of a step that come together are added before
/// they are classified.
class FlushedSum {
 public:
  explicit FlushedSum(const underflow::Target& target) : target_(target) {}

  void add(const frames::Frame& frame);
  /// Zeros of values computed in binary16 may be flushed values: counted as perhaps.
  void add_perhaps(std::int64_t step, std::uint64_t zeros);
  std::vector<FlushedProfile> finish();

 private:
  void close();

  underflow::Target target_;
  bool open_ = false;
  std::int64_t step_ = 0;  ///< of `tables_`
  std::vector<underflow::ScaledTable> tables_;
  std::map<std::int64_t, FlushedProfile> steps_;
};

}  // namespace halfscope::analyzers::replay
