// SPDX-License-Identifier: Apache-2.0
// Which element format gradients keep more in, in MXFP8's blocks: E4M3 has one more bit of
// significand, E5M2 sixteen more binades of range, which a block's own scale mostly makes needless.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::formats {

struct MxGradients {
  std::uint64_t tensors = 0;  ///< of activations, or else of weights, with noise in both formats
  std::uint64_t e4m3_better = 0, e5m2_better = 0;  ///< of them, by signal-to-noise ratio
  double e4m3_db = 0, e5m2_db = 0;                 ///< medians over them
  std::string most_for_e5m2;  ///< the tensor that gains most by E5M2; empty if none does
  double gained_db = 0;       ///< by it
};

/// Empty where no gradient's whole tensors were read for block formats.
std::optional<MxGradients> mx_gradients(const underflow::Analysis& analysis);

}  // namespace halfscope::analyzers::formats
