// SPDX-License-Identifier: Apache-2.0
// Numbers to text (IEEE 754-2019, 5.12), for formats within binary32; from_text.hpp is the way
// back.
#pragma once

#include <cstdint>
#include <string>

#include "halfscope/number/format.hpp"
#include "halfscope/number/from_text.hpp"
#include "halfscope/number/modes.hpp"

namespace halfscope {

// All of them write "-" before a number whose sign bit is set, also before zero and NaN; "inf";
// "nan" for format f's quiet NaN without payload; "nan(0x1ff)" with one and "snan(0x1ff)" for a
// signaling one. from_text gives every encoding back from its to_text and its to_hex_text. All
// throw std::invalid_argument for formats with more precision or range than binary32.

/// The shortest decimal that from_text rounds back to `bits` (ties to even): no decimal within half
/// an ulp has fewer significant digits, and of those with as many none is closer.
///
/// Written as std::to_chars writes a float: in fixed or scientific notation, whichever is shorter
/// (fixed if equal), and a whole number in fixed notation with its own digits to the end:
/// binary16's largest is 65504, though 65500 would do.
std::string to_text(Format f, std::uint64_t bits);

/// Rounded to `digits` significant digits, in the direction `modes.rounding`: "1.500e+00". Rounding
/// to odd gives the neighbour with an odd last digit; stochastic rounding compares the discarded
/// part of the last digit with R / 2^r. Other modes do not matter.
/// Throws std::invalid_argument for fewer than one digit.
std::string to_text(Format f, std::uint64_t bits, int digits, const Modes& modes = {});

/// The exact value in hexadecimal: a 1, as many digits as needed, the power of two, "0x1.8p+3".
/// Subnormals alike: binary16's smallest is 0x1p-24. Zero is 0x0p+0.
std::string to_hex_text(Format f, std::uint64_t bits);

}  // namespace halfscope
