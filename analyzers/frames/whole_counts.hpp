// SPDX-License-Identifier: Apache-2.0
// Facts about whole tensors that their histograms lack, counted once for later analyses.
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
  MagnitudeSums sums;  ///< recorded values, split at the standard cuts
};

/// Outcome of one weight's updates at one step.
struct CountedUpdates {
  std::string weight;
  std::int64_t step = 0;
  std::string source;                                          ///< name_of(UpdateSource)
  std::vector<std::pair<std::string, UpdateTable>> by_format;  ///< by name, for each 16-bit format
};

/// Longest row of an attention's query or key at one step: overflow/attention_scores.hpp.
struct CountedRows {
  struct Longest {
    double norm = 0;  ///< upper bound, unscaled; infinity if a value is not finite
    std::uint64_t width = 0;
    bool whole = true;  ///< the whole row was measured, not a part that may be one head
  };
  std::string name;
  std::int64_t step = 0;
  Longest features_last;
  std::optional<Longest> channels_second;  ///< rows along dimension 1, as in convolutions
};

struct WholeCountsVisitor {
  std::function<void(CountedSums&&)> sums = {};
  std::function<void(CountedUpdates&&)> updates = {};
  std::function<void(CountedRows&&)> rows = {};
};

}  // namespace halfscope::analyzers::frames
