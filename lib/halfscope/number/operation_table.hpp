// SPDX-License-Identifier: Apache-2.0
// The library's operations by name, for programs that choose an operation at run time.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "halfscope/number/format.hpp"
#include "halfscope/number/integral.hpp"
#include "halfscope/number/modes.hpp"

namespace halfscope {

/// Type of an operand or a result: a floating-point encoding, an integer or a truth value.
struct WordType {
  std::string_view name;  ///< as in operation names: f16, ui32; or bool
  int width;              ///< bits

  constexpr int hex_digits() const { return (width + 3) / 4; }
};

/// Operands as bits; unused ones are zero.
using Operands = std::array<std::uint64_t, 3>;

/// An operation: f16_add, f32_to_f16, ... Names and meanings are those of Berkeley TestFloat 3e,
/// extended to all formats of at most 24 bits of precision and to operations that TestFloat lacks.
struct Operation {
  using Apply = Rounded (*)(const Operation&, const Operands&, const Modes&, bool exact);

  std::string name;
  Format format;                ///< format of the operands
  Format target;                ///< conversions: format of the result
  IntegerType integer;          ///< conversions from or to an integer: its type
  std::vector<WordType> takes;  ///< operand types, at most three
  WordType gives;
  Apply apply;

  /// With `exact`, roundToInt and the conversions to integers also raise inexact.
  Rounded operator()(const Operands& operands, const Modes& modes = {}, bool exact = false) const {
    return apply(*this, operands, modes, exact);
  }
};

/// All operations, format by format.
const std::vector<Operation>& operations();

/// Returns null if no operation has that name.
const Operation* find_operation(std::string_view name);

/// Returns at most `count` names that are most similar to a wrong one, the most similar first.
std::vector<std::string_view> similar_operations(std::string_view name, std::size_t count);

/// TestFloat's encoding: 01 inexact, 02 underflow, 04 overflow, 08 divide by zero, 10 invalid.
constexpr unsigned flag_bits(const Flags& flags) {
  return (flags.inexact ? 0x01u : 0u) | (flags.underflow ? 0x02u : 0u) |
         (flags.overflow ? 0x04u : 0u) | (flags.divide_by_zero ? 0x08u : 0u) |
         (flags.invalid ? 0x10u : 0u);
}

}  // namespace halfscope
