// SPDX-License-Identifier: Apache-2.0
// Numbers to text (IEEE 754-2019, 5.12), for formats within binary32. Inverse: from_text.hpp.
#pragma once

#include <cstdint>
#include <string>

#include "halfscope/number/format.hpp"
#include "halfscope/number/from_text.hpp"
#include "halfscope/number/modes.hpp"

namespace halfscope {

// All functions write "-" before a number whose sign bit is set, including zero and NaN; "inf";
// "nan" for format f's quiet NaN without payload; "nan(0x1ff)" with a payload and "snan(0x1ff)" for
// a signaling NaN. from_text() restores every encoding from to_text() and to_hex_text(). All throw
// std::invalid_argument for formats with more precision or range than binary32.

/// Returns the shortest decimal that from_text() rounds back to `bits` (ties to even): no decimal
/// within half an ulp has fewer significant digits, and no equally short one is closer.
///
/// The layout is std::to_chars's for float: fixed or scientific notation, whichever is shorter
/// (fixed if equal). A whole number in fixed notation has all its own digits: binary16's largest is
/// 65504, although 65500 would suffice.
std::string to_text(Format f, std::uint64_t bits);

/// Rounds to `digits` significant digits in the direction `modes.rounding`: "1.500e+00". Rounding
/// to odd selects the neighbour with an odd last digit; stochastic rounding compares the discarded
/// part of the last digit with R / 2^r. Other modes are ignored. Throws std::invalid_argument if
/// digits < 1.
std::string to_text(Format f, std::uint64_t bits, int digits, const Modes& modes = {});

/// Returns the exact value in hexadecimal: a leading 1, as many digits as needed, the power of two,
/// "0x1.8p+3". Subnormals have the same form: binary16's smallest is 0x1p-24. Zero is 0x0p+0.
std::string to_hex_text(Format f, std::uint64_t bits);

}  // namespace halfscope
