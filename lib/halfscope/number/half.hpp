// SPDX-License-Identifier: Apache-2.0
// half, bfloat16, float8_e4m3...: number types that behave like float, each operation rounded once.
//
//     using namespace halfscope::literals;
//     constexpr halfscope::half x = 0.1_h;  // 0.0999755859375
//     static_assert(x + 0.2_h != 0.3_h && 2048_h + 1_h == 2048_h);
//
// half_math.hpp has the functions of <cmath>, half_fmt.hpp and half_stream.hpp formatting,
// half_eigen.hpp Eigen's traits. For other roundings, flags and modes call the functions on
// encodings (arithmetic.hpp and its neighbours) with bits().
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <iterator>
#include <span>
#include <type_traits>

#include "halfscope/number/arithmetic.hpp"
#include "halfscope/number/bits.hpp"
#include "halfscope/number/compare.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/format.hpp"
#include "halfscope/number/integral.hpp"
#include "halfscope/number/neighbour.hpp"

namespace halfscope {

/// Integer types that convert: at most 64 bits (in GNU dialects __int128 is std::integral, too).
template <typename T>
concept MachineInteger = std::integral<T> && sizeof(T) <= 8;

/// A number of format F, any format within binary32. Stores only its encoding.
///
/// Rounds to nearest, ties to even; NaNs follow x86. As with float, an uninitialised variable has
/// an indeterminate value. There are no implicit conversions, so every rounding is visible: x *
/// 2.0f does not compile, x * half(2) does.
template <Format F>
class Float {
  static_assert(F.precision <= kBinary32.precision && F.emax <= kBinary32.emax && F.width <= 32,
                "Float<F>: F must be a format within binary32");

 public:
  /// The smallest unsigned type that can hold an encoding, which is in its low bits.
  using Bits =
      std::conditional_t<(F.width <= 8), std::uint8_t,
                         std::conditional_t<(F.width <= 16), std::uint16_t, std::uint32_t>>;
  static constexpr Format kFormat = F;

  Float() = default;
  /// Ignores bits above the format's width.
  HALFSCOPE_HD static constexpr Float from_bits(Bits bits) {
    return Encoded{bits & (F.sign_mask() | F.magnitude_mask())};
  }
  HALFSCOPE_HD constexpr Bits bits() const { return bits_; }

  // Conversions from numbers of other types, each rounded once.
  HALFSCOPE_HD constexpr explicit Float(float x) : Float(Encoded{from_float(F, x).bits}) {}
  HALFSCOPE_HD constexpr explicit Float(double x) : Float(Encoded{from_double(F, x).bits}) {}
  explicit Float(long double) = delete;  // its format differs between machines
  template <Format G>
  requires(F != G) HALFSCOPE_HD constexpr explicit Float(Float<G> x)
      : Float(Encoded{convert(F, G, x.bits()).bits}) {}
  template <MachineInteger Integer>
  HALFSCOPE_HD constexpr explicit Float(Integer x) : Float(Encoded{encode(x)}) {}

  // Conversions to other types are exact, except that integers truncate. A value outside the
  // integer's range, undefined in C++, becomes x86's integer indefinite. To bool: true if nonzero.
  HALFSCOPE_HD constexpr explicit operator float() const {
    return detail::bit_cast<float>(static_cast<std::uint32_t>(convert(kBinary32, F, bits_).bits));
  }
  HALFSCOPE_HD constexpr explicit operator double() const { return to_double(F, bits_); }
  HALFSCOPE_HD constexpr explicit operator bool() const {
    return (bits_ & F.magnitude_mask()) != 0;
  }
  template <MachineInteger Integer>
  requires(!std::same_as<Integer, bool>) HALFSCOPE_HD constexpr explicit operator Integer() const {
    constexpr Modes kTowardZero = {.rounding = Rounding::toward_zero};
    return static_cast<Integer>(
        to_integer(integer_type<Integer>(), F, bits_, kTowardZero, false).bits);
  }

  HALFSCOPE_HD friend constexpr Float operator+(Float a) { return a; }
  HALFSCOPE_HD friend constexpr Float operator-(Float a) { return Encoded{negate(F, a.bits_)}; }
  HALFSCOPE_HD friend constexpr Float operator+(Float a, Float b) {
    return Encoded{add(F, a.bits_, b.bits_).bits};
  }
  HALFSCOPE_HD friend constexpr Float operator-(Float a, Float b) {
    return Encoded{subtract(F, a.bits_, b.bits_).bits};
  }
  HALFSCOPE_HD friend constexpr Float operator*(Float a, Float b) {
    return Encoded{multiply(F, a.bits_, b.bits_).bits};
  }
  HALFSCOPE_HD friend constexpr Float operator/(Float a, Float b) {
    return Encoded{divide(F, a.bits_, b.bits_).bits};
  }
  HALFSCOPE_HD constexpr Float& operator+=(Float b) { return *this = *this + b; }
  HALFSCOPE_HD constexpr Float& operator-=(Float b) { return *this = *this - b; }
  HALFSCOPE_HD constexpr Float& operator*=(Float b) { return *this = *this * b; }
  HALFSCOPE_HD constexpr Float& operator/=(Float b) { return *this = *this / b; }
  HALFSCOPE_HD constexpr Float& operator++() { return *this += Float(1); }
  HALFSCOPE_HD constexpr Float& operator--() { return *this -= Float(1); }
  HALFSCOPE_HD constexpr Float operator++(int) {
    const Float before = *this;
    ++*this;
    return before;
  }
  HALFSCOPE_HD constexpr Float operator--(int) {
    const Float before = *this;
    --*this;
    return before;
  }

  // IEEE 754-2019, 5.11: a NaN is unordered with everything, itself included; -0 == +0.
  HALFSCOPE_HD friend constexpr bool operator==(Float a, Float b) {
    return equal(F, a.bits_, b.bits_).result;
  }
  HALFSCOPE_HD friend constexpr bool operator<(Float a, Float b) {
    return less(F, a.bits_, b.bits_).result;
  }
  HALFSCOPE_HD friend constexpr bool operator<=(Float a, Float b) {
    return less_equal(F, a.bits_, b.bits_).result;
  }
  HALFSCOPE_HD friend constexpr bool operator>(Float a, Float b) { return b < a; }
  HALFSCOPE_HD friend constexpr bool operator>=(Float a, Float b) { return b <= a; }
  friend constexpr std::partial_ordering operator<=>(Float a, Float b) {
    if (a < b) return std::partial_ordering::less;
    if (b < a) return std::partial_ordering::greater;
    return a == b ? std::partial_ordering::equivalent : std::partial_ordering::unordered;
  }

 private:
  struct Encoded {  // prevents an integer from being used as an encoding
    std::uint64_t bits;
  };
  HALFSCOPE_HD constexpr Float(Encoded x) : bits_(static_cast<Bits>(x.bits)) {}

  template <MachineInteger Integer>
  HALFSCOPE_HD static constexpr IntegerType integer_type() {
    constexpr bool kSigned = std::is_signed_v<Integer>;
    if (sizeof(Integer) < 4) return IntegerType::i32;
    if (sizeof(Integer) == 4) return kSigned ? IntegerType::i32 : IntegerType::u32;
    return kSigned ? IntegerType::i64 : IntegerType::u64;
  }
  template <MachineInteger Integer>
  HALFSCOPE_HD static constexpr std::uint64_t encode(Integer x) {
    return from_integer(F, integer_type<Integer>(), static_cast<std::uint64_t>(x)).bits;
  }

  Bits bits_;
};

using half = Float<kBinary16>;
using bfloat16 = Float<kBfloat16>;
using tf32 = Float<kTf32>;
using binary32 = Float<kBinary32>;  ///< the same format as float, computed by the emulator
using float8_e4m3 = Float<kFloat8E4M3>;
using float8_e5m2 = Float<kFloat8E5M2>;
using float6_e3m2 = Float<kFloat6E3M2>;
using float6_e2m3 = Float<kFloat6E2M3>;
using float4_e2m1 = Float<kFloat4E2M1>;

static_assert(std::is_trivial_v<half> && sizeof(half) == 2 && sizeof(float8_e4m3) == 1);

/// Returns a view of an array of numbers (a vector, a span, ...) as encodings, without a copy: the
/// arguments of the functions of array/array.hpp.
template <typename Array>
auto bits_of(Array& values) {
  using Number = std::remove_pointer_t<decltype(std::data(values))>;
  using Bits = typename Number::Bits;
  static_assert(std::is_standard_layout_v<Number> && sizeof(Number) == sizeof(Bits));
  using Element = std::conditional_t<std::is_const_v<Number>, const Bits, Bits>;
  return std::span<Element>(reinterpret_cast<Element*>(std::data(values)), std::size(values));
}

}  // namespace halfscope

#include "halfscope/number/half_limits.hpp"    // needed wherever the type is used
#include "halfscope/number/half_literals.hpp"  // IWYU pragma: export
