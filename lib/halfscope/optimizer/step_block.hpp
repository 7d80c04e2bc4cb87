// SPDX-License-Identifier: Apache-2.0
// Runs instructions over a block of elements; step_simd.cpp. For step.cpp alone.
#pragma once

#include <span>

#include "halfscope/optimizer/program.hpp"

namespace halfscope::optimizer {

inline constexpr std::size_t kStepBlock = 256;  ///< elements; all operands of a block fit into L1

/// One array of kStepBlock values for each operand; numbers are repeated.
template <typename T>
struct alignas(64) StepBlock {
  T values[kOperands][kStepBlock];
  T* of(Operand operand) { return values[static_cast<int>(operand)]; }
};

/// Computes one instruction for all elements of the block, rounded to T. Without `fma`, products
/// are rounded before they are added.
void compute(const Instruction& instruction, bool fma, StepBlock<float>& block);
void compute(const Instruction& instruction, bool fma, StepBlock<double>& block);

}  // namespace halfscope::optimizer
