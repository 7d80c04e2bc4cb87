// SPDX-License-Identifier: Apache-2.0
// Gradients that are taken as unscaled and carry the run's loss scale.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::scale_history {

/// Steps whose gradients, taken as unscaled, would have overflowed binary16 at
/// the step's loss scale, although the steps were not skipped.
struct CarriedScale {
  std::string log;
  std::string tag = {};  ///< the scalar that has the loss scale; empty: none
  std::uint64_t steps = 0;
  std::uint64_t of = 0;  ///< steps that have gradients and a loss scale
};

/// Empty unless a tenth of the steps, and two at least, are such steps. A run
/// log has none.
std::optional<CarriedScale> carried_scale(const underflow::LogFindings& log);

}  // namespace halfscope::analyzers::scale_history
