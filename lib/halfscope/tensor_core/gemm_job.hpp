// SPDX-License-Identifier: Apache-2.0
// One product as its vector kernel sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "halfscope/tensor_core/mma.hpp"
#include "halfscope/tensor_core/plan.hpp"

namespace halfscope::tensor_core {

/// The exponent of a zero: far below that of any product.
inline constexpr int kNoExponent = -10000;

/// Numbers that the kernel takes. The product of two is a normal number of binary32, and exact: it
/// has 24 bits at most. All of binary16 and FP8 are among them, and bfloat16 but for its ends.
inline constexpr int kLeastExponent = -50, kLargestExponent = 62;

/// Where the kernel's exponents of the alignment begin: below those of all products of such
/// numbers, and 2^(F - E) is still a number of binary32.
inline constexpr int kLeastAlignment = -102;

/// Some rows of A, element k of row i at i * stride + k. Exponents are there twice, one in each
/// half of a word.
struct RowsOfA {
  const float* values;
  const std::uint32_t* exponents;
  std::size_t stride;
  const std::uint8_t* skipped;  ///< by row: not 0 where a number is not one for the kernel
  std::size_t count;
};

/// panel_width() columns of B, those of element k beside each other.
struct PanelOfB {
  const float* values;
  const std::int16_t* exponents;
};

/// Columns of a panel; 0 where there is no vector code.
std::size_t panel_width();

/// Has the kernel code for this unit? If not, chain() does it all.
bool has_kernel(const Unit& unit);

/// sums: of count rows and panel_width() columns, C before and D after; numbers of the
/// accumulator's format, as binary32. Not changed: rows that are skipped.
void run_steps(const Unit& unit, Accumulator d, const RowsOfA& a, const PanelOfB& b,
               std::span<const StepRange> steps, float* sums);

}  // namespace halfscope::tensor_core
