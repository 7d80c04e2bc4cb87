// SPDX-License-Identifier: Apache-2.0
// Steps of a run from the batches of its epochs, where a program counts those.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "analyzers/readers/console/console_lines.hpp"

namespace halfscope::analyzers::readers::console {

/// Takes a file's lines in order. The first epoch keeps its printed numbers. A later one whose
/// numbers go on keeps them, too; otherwise it begins behind the batches of the one before: all of
/// them if lines say how many there are, else the last one printed. Every rank prints such lines:
/// the first one counts. Afterwards `in_epoch` stands in lines alone whose step is at least this.
class EpochSteps {
 public:
  void to_steps(ConsoleLine& line);

 private:
  static constexpr std::size_t kMostEpochs = 100'000, kMostForms = 64;
  /// Of one form of line.
  struct Counter {
    std::map<std::int64_t, std::int64_t> begins = {};  // steps before each epoch
    std::int64_t printed = 0;                          // by the last line
    std::optional<std::int64_t> batches = {};          // of its epoch
    std::int64_t begin_of(const InEpoch& in_epoch, std::int64_t now);
  };

  std::optional<std::int64_t> rank_;
  std::map<std::size_t, Counter> counters_;
};

}  // namespace halfscope::analyzers::readers::console
