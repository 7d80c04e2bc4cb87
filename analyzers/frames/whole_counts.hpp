// SPDX-License-Identifier: Apache-2.0
// What whole tensors tell beyond their tables, counted once for whoever asks later.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "halfscope/table/count/magnitude_sums.hpp"
#include "halfscope/table/update/update_table.hpp"

namespace halfscope::analyzers::frames {

/// Exact sums of one whole tensor at one step.
struct CountedSums {
  std::string name;
  std::int64_t step = 0;
  double scale = 1.0;  ///< unscaled value = recorded value / scale
  std::uint64_t elements = 0;
  MagnitudeSums sums;  ///< of the recorded values, with the standard cuts
};

/// What becomes of one weight's updates at one step.
struct CountedUpdates {
  std::string weight;
  std::int64_t step = 0;
  std::string source;                                          ///< name_of(UpdateSource)
  std::vector<std::pair<std::string, UpdateTable>> by_format;  ///< by name: those of 16 bits
};

/// The longest row of a query or key of an attention at one step: overflow/attention_scores.hpp.
struct CountedRows {
  struct Longest {
    double norm = 0;  ///< unscaled, no less than it is; infinity where a value is no number
    std::uint64_t width = 0;
    bool whole = true;  ///< of the whole row, not of a part that may be one head
  };
  std::string name;
  std::int64_t step = 0;
  Longest features_last;
  std::optional<Longest> channels_second;  ///< as convolutions have them
};

struct WholeCountsVisitor {
  std::function<void(CountedSums&&)> sums = {};
  std::function<void(CountedUpdates&&)> updates = {};
  std::function<void(CountedRows&&)> rows = {};
};

}  // namespace halfscope::analyzers::frames
