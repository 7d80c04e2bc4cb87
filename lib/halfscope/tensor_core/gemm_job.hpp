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

/// The kernels take operands below 2^63 and steps whose largest product, if it is not zero, is
/// 2^-100 or more. Then products and what they are scaled by are within binary32, and a product
/// that is not exact, because it is subnormal, is cut to 0. All of binary16 and FP8 is like that.
inline constexpr int kLargestExponent = 62, kLeastProduct = -100;

/// The exponent of the alignment begins here: below that of all such products.
inline constexpr int kLeastAlignment = kLeastProduct - 2;

/// Some rows of A, element k of row i at i * stride + k. Exponents are there twice, one in each
/// half of a word.
struct RowsOfA {
  const float* values;
  const std::uint32_t* exponents;
  std::size_t stride;
  std::size_t count;
};

/// panel_width() columns of B, those of element k beside each other.
struct PanelOfB {
  const float* values;
  const std::int16_t* exponents;
};

/// Columns of a panel.
std::size_t panel_width();

/// Have the kernels code for this unit? If not, chain() does it all.
bool has_kernel(const Unit& unit);

/// sums: of count rows and panel_width() columns, C before and D after; numbers of the
/// accumulator's format, as binary32. by_chain: of count rows; where it is not 0, before or after,
/// the row has to be computed by chain(), and its sums are of no use. The caller sets the
/// floating-point environment: to nearest, subnormals kept.
void run_steps(const Unit& unit, Accumulator d, const RowsOfA& a, const PanelOfB& b,
               std::span<const StepRange> steps, float* sums, std::uint8_t* by_chain);

/// The same in plain C++, where there is no vector code.
inline constexpr std::size_t kPlainWidth = 16;
void run_plain_steps(const Unit& unit, Accumulator d, const RowsOfA& a, const PanelOfB& b,
                     std::span<const StepRange> steps, float* sums, std::uint8_t* by_chain);

}  // namespace halfscope::tensor_core
