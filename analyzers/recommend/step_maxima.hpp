// SPDX-License-Identifier: Apache-2.0
// The largest scale that holds each step: by the tables, and by the scalars that a run log has for
// every step.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analyzers/recommend/advice.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::recommend {

/// Steps of one log, ascending, over the roles a loss scale acts on. Left out are steps whose
/// infinities or NaN tell no magnitude: no rounding to binary16 is known to have made them, smaller
/// scales did not cure them, or the scale that they were computed at is unknown.
struct LogMaxima {
  std::string log;
  std::vector<StepMaximum> steps;
  std::vector<std::int64_t> left_out;
};

/// Logs without such steps are skipped. runs: the logs step by step, or none; they tell which
/// unread steps the run itself found clean.
std::vector<LogMaxima> step_maxima(const Basis& basis,
                                   std::span<const replay::StepSeries> runs = {});

}  // namespace halfscope::analyzers::recommend
