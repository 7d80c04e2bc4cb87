// SPDX-License-Identifier: Apache-2.0
// Parameters of a vector kernel for a matrix product.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "halfscope/tensor_core/mma.hpp"
#include "halfscope/tensor_core/plan.hpp"

namespace halfscope::tensor_core {

/// The exponent of a zero: far below the exponent of any product.
inline constexpr int kNoExponent = -10000;

/// The kernels support operands below 2^63 and steps whose largest product is zero or at least
/// 2^-100. Then products and scaled products are within binary32's range, and a product that is
/// inexact because it is subnormal is cut to 0. All of binary16 and FP8 satisfies this.
inline constexpr int kLargestExponent = 62, kLeastProduct = -100;

/// Lower limit of the alignment's exponent: below all such products.
inline constexpr int kLeastAlignment = kLeastProduct - 2;

/// Rows of A: element k of row i is at i * stride + k. Exponents are stored in both halves of a
/// word.
struct RowsOfA {
  const float* values;
  const std::uint32_t* exponents;
  std::size_t stride;
  std::size_t count;
};

/// panel_width() columns of B; the elements with the same k are adjacent.
struct PanelOfB {
  const float* values;
  const std::int16_t* exponents;
};

/// Number of columns of a panel.
std::size_t panel_width();

/// Returns true if the kernels support this unit; if not, chain() computes everything.
bool has_kernel(const Unit& unit);

/// Adds the products of `steps` to all outputs. sums: `count` rows of panel_width() columns, C
/// before and D after, numbers of the accumulator's format as binary32. by_chain: one entry per
/// row; if it is nonzero, before or after, the row must be computed by chain() and its sums are
/// invalid. The caller sets the floating-point environment: to nearest, subnormals kept.
void run_steps(const Unit& unit, Accumulator d, const RowsOfA& a, const PanelOfB& b,
               std::span<const StepRange> steps, float* sums, std::uint8_t* by_chain);

/// The same in plain C++, for processors without vector code.
inline constexpr std::size_t kPlainWidth = 16;
void run_plain_steps(const Unit& unit, Accumulator d, const RowsOfA& a, const PanelOfB& b,
                     std::span<const StepRange> steps, float* sums, std::uint8_t* by_chain);

}  // namespace halfscope::tensor_core
