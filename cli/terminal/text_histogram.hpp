// SPDX-License-Identifier: Apache-2.0
// The magnitudes of the gradients as a histogram of few rows, with the limits of the format.
#pragma once

#include <string>
#include <vector>

#include "analyzers/underflow/underflow.hpp"
#include "halfscope/log/run_log.hpp"

namespace halfscope::cli::terminal {

/// Finite nonzero values with an unscaled magnitude in [2^first, 2^end).
struct HistogramRow {
  int first = 0, end = 0;
  bool all_below = false, all_above = false;  ///< a tail: everything below 2^end, from 2^first on
  Interval count;
  bool overflow = false, subnormal = false, zero = false;  ///< what some of its magnitudes become
};

struct Histogram {
  std::vector<log::Role> roles;  ///< that are in it
  std::uint64_t tensors = 0, steps = 0;
  Interval of;                     ///< all values of the rows
  int binades_a_row = 1;           ///< but of the tails
  std::vector<HistogramRow> rows;  ///< largest first
};

/// Of all gradients; where there are none, of all tensors. Without rows where no value is finite
/// and nonzero. The classes are those of the analysis' format at its loss scale.
Histogram histogram_of(const analyzers::underflow::Analysis& analysis);

/// At most 80 columns wide, ASCII; empty without rows.
std::string histogram_text(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::cli::terminal
