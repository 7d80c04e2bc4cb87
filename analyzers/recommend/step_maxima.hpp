// SPDX-License-Identifier: Apache-2.0
// The largest magnitude of every step: of the tables, and of the scalars that a run log has for
// every step.
#pragma once

#include <string>
#include <vector>

#include "analyzers/recommend/advice.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::recommend {

/// Steps of one log, ascending, over the roles a loss scale acts on. Steps where an infinity or NaN
/// was there before any rounding to binary16, or that smaller scales did not cure, are left out: no
/// scale is to blame for them.
struct LogMaxima {
  std::string log;
  std::vector<StepMaximum> steps;
  std::vector<std::int64_t> left_out;
};

/// Logs without such steps are left out.
std::vector<LogMaxima> step_maxima(const Basis& basis);

}  // namespace halfscope::analyzers::recommend
