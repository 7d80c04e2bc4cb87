// SPDX-License-Identifier: Apache-2.0
// The largest scale without overflow for each step, from histograms and every-step scalars.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analyzers/recommend/advice.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::recommend {

/// Steps of one log, ascending, over the roles that a loss scale acts on. `left_out` has the steps
/// whose infinities or NaN show no magnitude: no rounding to binary16 is known to have made them,
/// smaller scales did not cure them, or their loss scale is unknown.
struct LogMaxima {
  std::string log;
  std::vector<StepMaximum> steps;
  std::vector<std::int64_t> left_out;
};

/// Returns the maxima of each log that has such steps. `runs`: the series of all logs, or empty;
/// they show at which scales the run found unread steps clean.
std::vector<LogMaxima> step_maxima(const Basis& basis,
                                   std::span<const replay::StepSeries> runs = {});

}  // namespace halfscope::analyzers::recommend
