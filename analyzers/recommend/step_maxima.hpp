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
  /// Beside each step: log2 of the largest power-of-two scale at which it does not overflow in the
  /// target format, as far as its values are known. Exact.
  std::vector<int> highest_log2;
  std::vector<std::int64_t> left_out;
};

/// Logs without such steps are left out.
std::vector<LogMaxima> step_maxima(const Basis& basis);

/// log2 of the smallest unscaled magnitude that overflows at loss scale 2^k.
double limit_log2(const underflow::Target& target, int k);

}  // namespace halfscope::analyzers::recommend
