// SPDX-License-Identifier: Apache-2.0
// Compares element formats for gradients in MXFP8's blocks. E4M3 has one more bit of significand,
// E5M2 has sixteen more binades of range, which a block's own scale mostly makes unnecessary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::formats {

struct MxGradients {
  std::uint64_t tensors = 0;  ///< activation (else weight) gradients with noise in both formats
  std::uint64_t e4m3_better = 0, e5m2_better = 0;  ///< numbers of tensors, by signal-to-noise ratio
  double e4m3_db = 0, e5m2_db = 0;                 ///< medians over the tensors
  std::string most_for_e5m2;                       ///< tensor that gains most by E5M2; empty: none
  double gained_db = 0;                            ///< gain of that tensor
};

/// Returns the comparison; empty if no gradient's whole tensors were read for block formats.
std::optional<MxGradients> mx_gradients(const underflow::Analysis& analysis);

}  // namespace halfscope::analyzers::formats
