// SPDX-License-Identifier: Apache-2.0
// The library's operations by name, for programs that are told at run time what to compute.
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

/// What an operand or a result is: a floating-point encoding, an integer or a truth value.
struct WordType {
  std::string_view name;  ///< as operation names spell it: f16, ui32; bool
  int width;              ///< bits

  constexpr int hex_digits() const { return (width + 3) / 4; }
};

/// Operands as bits, the unused ones zero.
using Operands = std::array<std::uint64_t, 3>;

/// One row: f16_add, f32_to_f16, ... Names and meanings are those of Berkeley TestFloat 3e,
/// extended to all formats of at most 24 bits of precision and to operations that TestFloat does
/// not have.
struct Operation {
  using Apply = Rounded (*)(const Operation&, const Operands&, const Modes&, bool exact);

  std::string name;
  Format format;                ///< what it computes in; of a conversion: what it comes from
  Format target;                ///< of a conversion: what it goes to
  IntegerType integer;          ///< of a conversion from or to an integer
  std::vector<WordType> takes;  ///< its operands, three at most
  WordType gives;
  Apply apply;

  /// `exact` asks roundToInt and the conversions to integers to raise inexact, too.
  Rounded operator()(const Operands& operands, const Modes& modes = {}, bool exact = false) const {
    return apply(*this, operands, modes, exact);
  }
};

/// Every operation there is, format by format.
const std::vector<Operation>& operations();

/// Null when no operation has that name.
const Operation* find_operation(std::string_view name);

/// The names that look most like a wrong one, best first.
std::vector<std::string_view> similar_operations(std::string_view name, std::size_t count);

/// TestFloat's bits: 01 inexact, 02 underflow, 04 overflow, 08 divide by zero, 10 invalid.
constexpr unsigned flag_bits(const Flags& flags) {
  return (flags.inexact ? 0x01u : 0u) | (flags.underflow ? 0x02u : 0u) |
         (flags.overflow ? 0x04u : 0u) | (flags.divide_by_zero ? 0x08u : 0u) |
         (flags.invalid ? 0x10u : 0u);
}

}  // namespace halfscope
