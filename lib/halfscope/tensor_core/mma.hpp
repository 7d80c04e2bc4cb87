// SPDX-License-Identifier: Apache-2.0
// One step of a Tensor Core, bit for bit: D = C + the sum of some products. NVIDIA documents
// neither its order nor its rounding; docs/tensor-core.md: what was measured, what is inferred.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "halfscope/number/bits.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/number/modes.hpp"
#include "halfscope/number/nan.hpp"
#include "halfscope/number/round.hpp"

namespace halfscope::tensor_core {

/// The format of C and D.
enum class Accumulator : std::uint8_t { binary16, binary32 };

HALFSCOPE_HD constexpr Format format_of(Accumulator d) {
  if (d == Accumulator::binary16) return kBinary16;
  return kBinary32;
}

inline constexpr int kNoFloor = -10000;

/// Description of how a unit computes a step. All addends, including C, are cut to a grid of
/// `fraction_bits` bits below their largest exponent; the sum on the grid is exact, and rounded
/// once.
struct Unit {
  int length;              ///< products of a step
  int fraction_bits;       ///< at most 28, in a ScaledUnit 40
  int floor16 = kNoFloor;  ///< least exponent of the alignment, D in binary16
  int floor32 = kNoFloor;  ///< least exponent of the alignment, D in binary32

  // Published models disagree on the next two members and on floor16. The defaults and kHopper's
  // floor16 were measured on an H100 (docs/tensor-core.md); other architectures are assumed to be
  // equal.
  bool negative_zero = false;  ///< a negative sum that rounds to zero is -0, not +0
  bool normalises_c = false;   ///< a subnormal C has the exponent of its leading bit, not emin

  int zero_bits32 = 0;     ///< lowest bits of D in binary32 that rounding makes zero
  bool infinite32 = true;  ///< too large results of D in binary32 become infinity

  // Hypotheses for tests to refute; no known hardware behaves like this.
  Rounding round16 = Rounding::ties_to_even;
  Rounding round32 = Rounding::toward_zero;
  bool normalises_products = false;  ///< a product has the exponent of its leading bit
  bool zeros_align = false;          ///< zero products have an exponent too
  bool by_way_of_32 = false;         ///< D in binary16 is rounded to binary32 first

  friend constexpr bool operator==(const Unit&, const Unit&) = default;
};

inline constexpr Unit kVolta = {.length = 4, .fraction_bits = 23, .floor16 = -19};
/// From one published model; another paper has kTuringBy4. No hardware results are public.
inline constexpr Unit kTuring = {.length = 8, .fraction_bits = 24, .floor16 = -20};
inline constexpr Unit kTuringBy4 = {.length = 4, .fraction_bits = 24, .floor16 = -20};
inline constexpr Unit kAmpere = {.length = 8, .fraction_bits = 24, .floor16 = -20, .floor32 = -132};
inline constexpr Unit kHopper = {
    .length = 16, .fraction_bits = 25, .floor16 = -21, .floor32 = -133};

/// E4M3 and E5M2. Hopper's wgmma was measured: its products are too large, or its grid too coarse,
/// to show a floor. The others are from a published model.
inline constexpr Unit kHopperFp8 = {.length = 32, .fraction_bits = 13, .zero_bits32 = 10};
inline constexpr Unit kAdaFp8 = {.length = 16, .fraction_bits = 13, .zero_bits32 = 10};
inline constexpr Unit kBlackwellFp8 = {.length = 32, .fraction_bits = 25};

/// Format of the scales of blocks. The sign of an E4M3 scale is ignored.
enum class Scale : std::uint8_t { e8m0, e4m3 };

/// A unit whose operands have scales: a step cuts sums of groups of scaled products, with D in
/// binary32 (scaled_mma.hpp).
struct ScaledUnit {
  Unit unit;
  int group = 1;  ///< products that are added exactly before the alignment; divides `block`
  int block = 0;  ///< products with the same scale of A and of B; 0: there are no scales
  Scale scale = Scale::e8m0;

  friend constexpr bool operator==(const ScaledUnit&, const ScaledUnit&) = default;
};

/// From one published model (docs/tensor-core.md). No hardware has confirmed them here.
inline constexpr ScaledUnit kBlackwellMxf8f6f4 = {
    .unit = {.length = 32, .fraction_bits = 25, .floor32 = -133}, .block = 32};
inline constexpr ScaledUnit kBlackwellMxf4 = {
    .unit = {.length = 64, .fraction_bits = 35, .floor32 = -139}, .group = 16, .block = 32};
inline constexpr ScaledUnit kBlackwellMxf4nvf4 = {
    .unit = kBlackwellMxf4.unit, .group = 16, .block = 16, .scale = Scale::e4m3};

struct Architecture {
  std::string_view name;
  Unit unit;                     ///< for binary16, and for bfloat16 if takes_bfloat16
  bool takes_bfloat16 = false;   ///< only with sums in binary32
  std::optional<Unit> fp8 = {};  ///< for E4M3 and E5M2, in any combination of A and B
  /// For E4M3, E5M2, E3M2, E2M3 and E2M1, in any combination of A and B.
  std::optional<ScaledUnit> mxf8f6f4 = {};
  std::optional<ScaledUnit> mxf4 = {};      ///< for E2M1
  std::optional<ScaledUnit> mxf4nvf4 = {};  ///< for E2M1
};

inline constexpr std::array kArchitectures = {
    Architecture{"volta", kVolta},
    Architecture{"turing", kTuring},
    Architecture{"ampere", kAmpere, true},
    Architecture{"ada", kAmpere, true, kAdaFp8},
    Architecture{"hopper", kHopper, true, kHopperFp8},
    Architecture{"blackwell", kHopper, true, kBlackwellFp8, kBlackwellMxf8f6f4, kBlackwellMxf4,
                 kBlackwellMxf4nvf4},
};

/// Returns null if no architecture has that name.
constexpr const Architecture* find_architecture(std::string_view name) {
  for (const Architecture& row : kArchitectures) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

/// Returns the unit for elements of formats a and b and sums in format_of(d); empty if there is
/// none.
constexpr std::optional<Unit> unit_of(const Architecture& of, Format a, Format b, Accumulator d) {
  const auto is_fp8 = [](Format f) { return f == kFloat8E4M3 || f == kFloat8E5M2; };
  if (is_fp8(a) && is_fp8(b)) return of.fp8;
  if (a == kBinary16 && b == kBinary16) return of.unit;
  const bool bfloat16 = a == kBfloat16 && b == kBfloat16 && of.takes_bfloat16;
  if (bfloat16 && d == Accumulator::binary32) return of.unit;
  return std::nullopt;
}

namespace detail {

/// The number (-1)^negative * significand * 2^last. A zero's exponent is ignored.
struct Term {
  bool negative;
  std::uint32_t significand;
  int last;
  int exponent;  ///< exponent for the alignment; kNoFloor: it does not take part
};

/// Decodes a finite encoding; the exponent of a subnormal is emin.
HALFSCOPE_HD constexpr Term term(Format f, std::uint32_t bits) {
  const std::uint32_t magnitude = bits & static_cast<std::uint32_t>(f.magnitude_mask());
  const std::uint32_t field = magnitude >> f.fraction_bits();
  const std::uint32_t above = field == 0 ? 0 : field - 1;  // binades above the first
  const int exponent = f.emin() + static_cast<int>(above);
  return {(bits & f.sign_mask()) != 0, magnitude - (above << f.fraction_bits()),
          exponent - f.fraction_bits(), exponent};
}

HALFSCOPE_HD constexpr int leading_exponent(const Term& t) {
  return t.last + halfscope::detail::bit_width(t.significand) - 1;
}

/// Returns the exact product, not normalised: its significand as a fraction is below 4.
HALFSCOPE_HD constexpr Term product(const Unit& unit, Format fa, std::uint32_t a, Format fb,
                                    std::uint32_t b) {
  const Term x = term(fa, a), y = term(fb, b);
  Term out = {x.negative != y.negative, x.significand * y.significand, x.last + y.last,
              x.exponent + y.exponent};
  if (unit.normalises_products && out.significand != 0) out.exponent = leading_exponent(out);
  if (!unit.zeros_align && out.significand == 0) out.exponent = kNoFloor;
  return out;
}

HALFSCOPE_HD constexpr Term accumulated(const Unit& unit, Accumulator d, std::uint32_t c) {
  Term out = term(format_of(d), c);
  const bool to_normalise = unit.normalises_c && d == Accumulator::binary16;
  if (to_normalise && out.significand != 0) out.exponent = leading_exponent(out);
  if (out.significand == 0) out.exponent = kNoFloor;
  return out;
}

/// The result if any operand is not finite.
struct Special {
  bool nan = false, plus = false, minus = false;

  HALFSCOPE_HD constexpr bool any() const { return nan || plus || minus; }
  HALFSCOPE_HD constexpr void add_infinity(bool negative) { (negative ? minus : plus) = true; }

  HALFSCOPE_HD constexpr void add_product(Format fa, std::uint32_t a, Format fb, std::uint32_t b) {
    const std::uint64_t x = a & fa.magnitude_mask(), y = b & fb.magnitude_mask();
    if (x <= fa.largest_finite() && y <= fb.largest_finite()) return;
    if (is_nan(fa, a) || is_nan(fb, b) || x == 0 || y == 0) {
      nan = true;
    } else {
      add_infinity(((a & fa.sign_mask()) != 0) != ((b & fb.sign_mask()) != 0));
    }
  }

  HALFSCOPE_HD constexpr void add_c(Format f, std::uint32_t c) {
    if (is_nan(f, c)) nan = true;
    if (is_infinity(f, c)) add_infinity((c & f.sign_mask()) != 0);
  }

  /// All NaN results are the same: all ones except the sign.
  HALFSCOPE_HD constexpr std::uint32_t result(Format out) const {
    if (nan || (plus && minus)) return static_cast<std::uint32_t>(out.magnitude_mask());
    return static_cast<std::uint32_t>(out.infinity() | (minus ? out.sign_mask() : 0));
  }
};

/// Returns the NaN and infinities among the operands of a step, without those among scales.
HALFSCOPE_HD constexpr Special special_of(Accumulator d, Format fa, const std::uint16_t* a,
                                          Format fb, const std::uint16_t* b, int count,
                                          std::uint32_t c) {
  Special special;
  special.add_c(format_of(d), c);
  for (int i = 0; i < count; ++i) special.add_product(fa, a[i], fb, b[i]);
  return special;
}

/// Returns the term in units of 2^grid, truncated. t.last may be at most grid + 32.
HALFSCOPE_HD constexpr std::int64_t on_grid(const Term& t, int grid) {
  // No branch, because the direction of the shift is hard to predict. A zero may have any exponent.
  const auto down = static_cast<unsigned>(32 + grid - t.last);
  const auto cut =
      static_cast<std::int64_t>((std::uint64_t{t.significand} << 32) >> (down < 63 ? down : 63));
  return t.negative ? -cut : cut;
}

HALFSCOPE_HD constexpr std::uint32_t rounded32(const Unit& unit, bool negative,
                                               std::uint64_t magnitude, int grid) {
  const Format narrow = {kBinary32.precision - unit.zero_bits32, kBinary32.emax,
                         kBinary32.width - unit.zero_bits32};
  const Rounded d = round_pack(narrow, negative, magnitude, grid, {.rounding = unit.round32});
  const std::uint64_t sign = negative ? narrow.sign_mask() : 0;
  const std::uint64_t bits =
      d.flags.overflow && unit.infinite32 ? sign | narrow.infinity() : d.bits;
  if (bits == narrow.sign_mask() && !unit.negative_zero) return 0;
  return static_cast<std::uint32_t>(bits << unit.zero_bits32);
}

HALFSCOPE_HD constexpr std::uint32_t rounded(const Unit& unit, Accumulator d, std::int64_t sum,
                                             int grid) {
  const bool negative = sum < 0;
  const auto magnitude = static_cast<std::uint64_t>(negative ? -sum : sum);
  if (d == Accumulator::binary32) return rounded32(unit, negative, magnitude, grid);
  const Modes modes = {.rounding = unit.round16};
  std::uint64_t bits = 0;
  if (unit.by_way_of_32) {
    const Rounded wide =
        round_pack(kBinary32, negative, magnitude, grid, {.rounding = Rounding::toward_zero});
    bits = convert(kBinary16, kBinary32, wide.bits, modes).bits;
  } else {
    bits = round_pack(kBinary16, negative, magnitude, grid, modes).bits;
  }
  if (bits == kBinary16.sign_mask() && !unit.negative_zero) return 0;
  return static_cast<std::uint32_t>(bits);
}

/// An observer of aligned_sum() that does nothing.
struct Unseen {
  HALFSCOPE_HD constexpr void operator()(const Term&, std::int64_t, int) const {}
};

/// Returns D: C and the terms addend(0) to addend(count - 1), all finite, cut to one grid, added
/// and rounded once. Calls seen(term, kept, grid) for C and each term: it is cut to kept * 2^grid.
template <class Addend, class Seen = Unseen>
HALFSCOPE_HD constexpr std::uint32_t aligned_sum(const Unit& unit, Accumulator d, std::uint32_t c,
                                                 int count, const Addend& addend,
                                                 const Seen& seen = {}) {
  const Term start = accumulated(unit, d, c);
  int largest = d == Accumulator::binary16 ? unit.floor16 : unit.floor32;
  if (start.exponent > largest) largest = start.exponent;
  for (int i = 0; i < count; ++i) {
    const int exponent = addend(i).exponent;
    if (exponent > largest) largest = exponent;
  }
  const int grid = largest - unit.fraction_bits;
  std::int64_t sum = on_grid(start, grid);
  seen(start, sum, grid);
  for (int i = 0; i < count; ++i) {
    const Term term = addend(i);
    const std::int64_t kept = on_grid(term, grid);
    seen(term, kept, grid);
    sum += kept;
  }
  return rounded(unit, d, sum, grid);
}

}  // namespace detail

/// D of one step of at most unit.length products a[i] * b[i]. a and b are encodings of A and B, c
/// and the result of format_of(d).
template <Format A = kBinary16, Format B = A>
HALFSCOPE_HD constexpr std::uint32_t step(const Unit& unit, Accumulator d, const std::uint16_t* a,
                                          const std::uint16_t* b, int count, std::uint32_t c) {
  bool finite = (c & format_of(d).magnitude_mask()) <= format_of(d).largest_finite();
  for (int i = 0; i < count; ++i) {
    finite &= (a[i] & A.magnitude_mask()) <= A.largest_finite();
    finite &= (b[i] & B.magnitude_mask()) <= B.largest_finite();
  }
  if (!finite) return detail::special_of(d, A, a, B, b, count, c).result(format_of(d));
  return detail::aligned_sum(unit, d, c, count,
                             [&](int i) { return detail::product(unit, A, a[i], B, b[i]); });
}

/// D of a chain of steps over `count` products, in their order: an instruction with that k, or
/// several instructions in sequence. Missing products of the last step are zeros.
template <Format A = kBinary16, Format B = A>
HALFSCOPE_HD constexpr std::uint32_t chain(const Unit& unit, Accumulator d, const std::uint16_t* a,
                                           const std::uint16_t* b, int count, std::uint32_t c) {
  for (int first = 0; first < count; first += unit.length) {
    const int left = count - first;
    c = step<A, B>(unit, d, a + first, b + first, left < unit.length ? left : unit.length, c);
  }
  return c;
}

using Chain = std::uint32_t (*)(const Unit&, Accumulator, const std::uint16_t*,
                                const std::uint16_t*, int, std::uint32_t);

/// Returns chain() for elements of formats a and b; null if no unit supports the pair.
constexpr Chain chain_of(Format a, Format b) {
  if (a == kBinary16 && b == kBinary16) return chain<kBinary16>;
  if (a == kBfloat16 && b == kBfloat16) return chain<kBfloat16>;
  if (a == kFloat8E4M3 && b == kFloat8E4M3) return chain<kFloat8E4M3>;
  if (a == kFloat8E5M2 && b == kFloat8E5M2) return chain<kFloat8E5M2>;
  if (a == kFloat8E4M3 && b == kFloat8E5M2) return chain<kFloat8E4M3, kFloat8E5M2>;
  if (a == kFloat8E5M2 && b == kFloat8E4M3) return chain<kFloat8E5M2, kFloat8E4M3>;
  return nullptr;
}

}  // namespace halfscope::tensor_core
