// SPDX-License-Identifier: Apache-2.0
// Whether gradients that are taken as unscaled carry the run's loss scale after all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::scale_history {

/// Steps whose gradients, taken as unscaled, would have overflowed binary16 at the loss scale that
/// the log tells of them, although they were not skipped.
struct CarriedScale {
  std::string log;
  std::string tag = {};  ///< of the scalar that has the loss scale; empty where it has none
  std::uint64_t steps = 0;
  std::uint64_t of = 0;  ///< steps that have gradients and a loss scale
};

/// Of another tool's log where that is so of a tenth of the steps, and two at least.
std::optional<CarriedScale> carried_scale(const underflow::LogFindings& log);

}  // namespace halfscope::analyzers::scale_history
