// SPDX-License-Identifier: Apache-2.0
// Steps of a run from the batches of its epochs, where a program counts those.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "analyzers/readers/console/console_lines.hpp"

namespace halfscope::analyzers::readers::console {

/// Takes a file's lines in order. An epoch begins behind the last batch that was printed of the one
/// before: how many followed is not in the log. Every rank prints such lines: the first one counts.
class EpochSteps {
 public:
  void to_steps(ConsoleLine& line);

 private:
  static constexpr std::size_t kMostEpochs = 100'000;

  std::int64_t begin_of(std::int64_t epoch);

  std::optional<std::int64_t> rank_;
  std::map<std::int64_t, std::int64_t> begins_;  // steps before each epoch
  std::int64_t last_ = 0;                        // the step of the last line
};

}  // namespace halfscope::analyzers::readers::console
