// SPDX-License-Identifier: Apache-2.0
// The parts of a Tensor Core's sum, computed by the functions of its step (mma.hpp).
#pragma once

#include <cstdint>
#include <vector>

#include "halfscope/tensor_core/scaled_mma.hpp"

namespace halfscope::tensor_core {

/// One addend of a step.
struct TracedTerm {
  detail::Term exact;     ///< before the cut; exponent kNoFloor: does not align others
  std::int64_t kept = 0;  ///< after the cut, in units of 2^TracedStep::grid
};

/// One step of a chain.
struct TracedStep {
  int first = 0, count = 0;       ///< its products
  std::uint32_t c = 0, d = 0;     ///< encodings
  bool special = false;           ///< an operand is not finite; the members below are not set
  int grid = 0;                   ///< exponent of the grid
  TracedTerm start;               ///< C
  std::vector<TracedTerm> terms;  ///< the products or, with scales, the sums of groups of products
  std::int64_t sum = 0;           ///< exact, in units of 2^grid
};

/// Returns the steps of chain() or, if unit.block is not 0, of scaled_chain(). The last step's d is
/// their result. Without blocks the scales may be null.
std::vector<TracedStep> trace(const ScaledUnit& unit, Accumulator d, const ScaledOperand& a,
                              const ScaledOperand& b, int count, std::uint32_t c);

}  // namespace halfscope::tensor_core
