// SPDX-License-Identifier: Apache-2.0
// A floating-point format is one table row; all its other properties are derived here.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#if defined(__CUDACC__)
#define HALFSCOPE_HD __host__ __device__
#else
#define HALFSCOPE_HD
#endif

namespace halfscope {

/// Meaning of the encodings with the largest exponent field.
enum class Specials : std::uint8_t {
  ieee,        ///< infinities and NaNs, as IEEE 754-2019, 3.4
  finite_nan,  ///< no infinity; only S.11...1 is NaN (E4M3 of OCP OFP8 1.0)
  finite       ///< numbers only (FP6 and FP4 of OCP MX 1.0)
};

/// A binary format, with the names of IEEE 754-2019, 3.3; a value is significand * 2^exponent.
struct Format {
  int precision;  ///< p: bits of the significand, the hidden bit included (binary16: 11)
  int emax;       ///< exponent of the largest finite binade (binary16: 15)
  int width;      ///< bits of an encoding, sign included (binary16: 16)
  Specials specials = Specials::ieee;

  /// Exponent of the smallest normal number. Formats that use the top exponent field for numbers
  /// have one more binade above the same bias.
  HALFSCOPE_HD constexpr int emin() const { return (specials == Specials::ieee ? 1 : 2) - emax; }
  HALFSCOPE_HD constexpr int fraction_bits() const { return precision - 1; }
  HALFSCOPE_HD constexpr int exponent_bits() const { return width - precision; }
  /// Exponent of the least significant bit of subnormals, the smallest step between values.
  HALFSCOPE_HD constexpr int min_quantum_exponent() const { return emin() - fraction_bits(); }

  HALFSCOPE_HD constexpr std::uint64_t fraction_mask() const {
    return (std::uint64_t{1} << fraction_bits()) - 1;
  }
  HALFSCOPE_HD constexpr std::uint64_t sign_mask() const { return std::uint64_t{1} << (width - 1); }
  HALFSCOPE_HD constexpr std::uint64_t magnitude_mask() const { return sign_mask() - 1; }
  HALFSCOPE_HD constexpr bool has_infinity() const { return specials == Specials::ieee; }
  HALFSCOPE_HD constexpr bool has_nan() const { return specials != Specials::finite; }
  HALFSCOPE_HD constexpr std::uint64_t largest_finite() const {
    if (specials == Specials::ieee) return (magnitude_mask() & ~fraction_mask()) - 1;
    return specials == Specials::finite_nan ? magnitude_mask() - 1 : magnitude_mask();
  }
  /// Encoding of +infinity. In a format without infinities: NaN, the encoding after the largest
  /// finite number; without NaN too: the largest finite number.
  HALFSCOPE_HD constexpr std::uint64_t infinity() const {
    return largest_finite() + (has_nan() ? 1 : 0);
  }
  /// The canonical quiet NaN, positive. In a format without NaN: the largest finite number, as in
  /// CUDA's conversions to FP6 and FP4.
  HALFSCOPE_HD constexpr std::uint64_t quiet_nan() const {
    return specials == Specials::ieee ? infinity() | (std::uint64_t{1} << (fraction_bits() - 1))
                                      : magnitude_mask();
  }

  friend constexpr bool operator==(const Format&, const Format&) = default;
};

// clang-format off
//                                      p   emax  width
inline constexpr Format kBinary16   = {11,    15,   16};  // IEEE 754-2019, 3.6
inline constexpr Format kBfloat16   = { 8,   127,   16};  // Intel, BFLOAT16 Numerics Definition
inline constexpr Format kTf32       = {11,   127,   19};  // NVIDIA A100 white paper; low 19 bits
inline constexpr Format kBinary32   = {24,   127,   32};  // IEEE 754-2019, 3.6
inline constexpr Format kBinary64   = {53,  1023,   64};  // IEEE 754-2019, 3.6
inline constexpr Format kFloat8E4M3 = { 4,     8,    8, Specials::finite_nan};  // OCP OFP8 1.0
inline constexpr Format kFloat8E5M2 = { 3,    15,    8};                        // OCP OFP8 1.0
inline constexpr Format kFloat6E3M2 = { 3,     4,    6, Specials::finite};      // OCP MX 1.0, 5.3.2
inline constexpr Format kFloat6E2M3 = { 4,     2,    6, Specials::finite};      // OCP MX 1.0, 5.3.2
inline constexpr Format kFloat4E2M1 = { 2,     2,    4, Specials::finite};      // OCP MX 1.0, 5.3.3
// clang-format on

struct NamedFormat {
  std::string_view name;
  Format format;
};

/// All formats, by their names on the command line. A new format is a row above and a row here.
inline constexpr std::array kFormats = {
    NamedFormat{"binary16", kBinary16}, NamedFormat{"bfloat16", kBfloat16},
    NamedFormat{"tf32", kTf32},         NamedFormat{"binary32", kBinary32},
    NamedFormat{"binary64", kBinary64}, NamedFormat{"e4m3", kFloat8E4M3},
    NamedFormat{"e5m2", kFloat8E5M2},   NamedFormat{"e3m2", kFloat6E3M2},
    NamedFormat{"e2m3", kFloat6E2M3},   NamedFormat{"e2m1", kFloat4E2M1},
};

/// Returns null if no format has that name.
constexpr const NamedFormat* find_format(std::string_view name) {
  for (const NamedFormat& row : kFormats) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace halfscope
