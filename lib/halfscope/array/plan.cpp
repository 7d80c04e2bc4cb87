// SPDX-License-Identifier: Apache-2.0
#include "halfscope/array/plan.hpp"

#include <bit>

#include "halfscope/array/element.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/nan.hpp"

namespace halfscope {
namespace {

constexpr int kBias = 127;  // exponent bias of binary32
constexpr std::uint32_t kSign = 0x80000000, kInfinity = 0x7F800000, kQuietNan = 0x7FC00000;
constexpr std::uint32_t kFraction = 0x007FFFFF;

bool keeps_payload(Format f, const Modes& modes) {
  return modes.nan == NanPolicy::x86 && f.has_infinity();
}

NarrowingPlan::Threshold threshold(Rounding rounding) {
  constexpr std::uint32_t kNever = 0xFFFFFFFF, kTurn = 0xFFFFFFFF, kHalf = 0x80000000;
  switch (rounding) {
    case Rounding::ties_to_even: return {kHalf, 0, 1};  // T - 1 if odd: rounds up from a half on
    case Rounding::ties_to_away: return {kHalf - 1, 0, 0};
    case Rounding::toward_zero: return {kNever, 0, 0};
    case Rounding::upward: return {0, kTurn, 0};
    case Rounding::downward: return {kNever, kTurn, 0};
    case Rounding::to_odd: return {0, 0, 1};  // T - 1 wraps if odd: never rounds up
    case Rounding::stochastic: break;
  }
  return {0, 0, 0};
}

NarrowingPlan::Special special_encodings(Format f, const Modes& modes) {
  NarrowingPlan::Special s = {};
  for (const bool negative : {false, true}) {
    const std::uint32_t sign = negative ? kSign : 0;
    const auto result = [&](std::uint32_t bits) {
      return static_cast<std::uint32_t>(convert(f, kBinary32, sign | bits, modes).bits);
    };
    s.overflow[negative] = static_cast<std::uint32_t>(
        (negative ? f.sign_mask() : 0) | detail::overflow_magnitude(f, negative, modes));
    s.infinity[negative] = result(kInfinity);
    s.nan[negative] = result(kQuietNan);
  }
  s.payload = keeps_payload(f, modes) ? kFraction : 0;
  return s;
}

NarrowingPlan::Special special_values(Format f, const Modes& modes) {
  const NarrowingPlan::Special narrow = special_encodings(f, modes);
  const auto wide = [&](std::uint32_t bits) {
    return static_cast<std::uint32_t>(convert(kBinary32, f, bits, {.nan = modes.nan}).bits);
  };
  NarrowingPlan::Special s = {};
  for (const bool negative : {false, true}) {
    s.overflow[negative] = wide(narrow.overflow[negative]);
    s.infinity[negative] = wide(narrow.infinity[negative]);
    s.nan[negative] = wide(narrow.nan[negative]);
  }
  const std::uint32_t lost = (1u << (24 - f.precision)) - 1;
  s.payload = keeps_payload(f, modes) ? kFraction & ~lost : 0;
  return s;
}

/// With integers: the processor's conversion would raise flags or trap in the caller's environment.
float smallest_subnormal(Format f) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(convert(kBinary32, f, 1).bits));
}

}  // namespace

bool can_narrow(Format f) {
  return f.precision >= 2 && f.precision <= 22 && f.emin() >= -126 && f.emax <= 127 &&
         f.width <= 31;
}

NarrowingPlan narrowing_plan(Format f, const Modes& modes) {
  NarrowingPlan plan = {};
  plan.same_exponents = f.emin() == kBinary32.emin();
  plan.stochastic = modes.rounding == Rounding::stochastic;
  plan.random_shift = 32 - modes.random_bits;
  plan.threshold = threshold(modes.rounding);
  plan.fraction_bits = f.fraction_bits();
  plan.cut = 24 - f.precision;
  plan.cut_base = plan.cut + f.emin() + kBias;
  plan.first_field = f.emin() + kBias;
  plan.sign_shift = 32 - f.width;
  plan.largest = static_cast<std::uint32_t>(f.largest_finite());
  plan.zero_below = modes.denormals_are_zero ? 0x00800000 : 0;
  plan.tiny_below = static_cast<std::uint32_t>(plan.first_field) << 23;
  plan.flush = modes.flush_to_zero;
  plan.flush_subnormal = modes.flush == Flush::subnormal;
  plan.first_normal = static_cast<std::uint32_t>(f.fraction_mask() + 1);
  // Below 2^emin binary32 has 24 bits too, or 23 if this is binary32's own 2^emin.
  const int lost = plan.same_exponents ? plan.cut - 1 : plan.cut;
  plan.near_width = modes.tininess == Tininess::after_rounding ? 1u << lost : 0;
  plan.near_low = plan.tiny_below - (1u << lost);
  plan.near_shift = 32 - lost;
  plan.nan_is_invalid = !f.has_nan();
  plan.narrow = special_encodings(f, modes);
  plan.wide = special_values(f, modes);
  plan.smallest = smallest_subnormal(f);
  return plan;
}

bool can_widen(Format f, const Modes& modes) {
  return can_narrow(f) && !(modes.flush_to_zero && f.emin() == kBinary32.emin());
}

WideningPlan widening_plan(Format f, const Modes& modes) {
  WideningPlan plan = {};
  plan.same_exponents = f.emin() == kBinary32.emin();
  plan.cut = 24 - f.precision;
  plan.first_field = f.emin() + kBias;
  plan.sign_shift = 32 - f.width;
  plan.magnitude_mask = static_cast<std::uint32_t>(f.magnitude_mask());
  plan.fraction_mask = static_cast<std::uint32_t>(f.fraction_mask());
  plan.largest = static_cast<std::uint32_t>(f.largest_finite());
  plan.infinity = plan.largest + (f.has_infinity() ? 1 : 0);
  plan.quiet_bit = static_cast<std::uint32_t>(f.has_infinity() ? f.quiet_nan() ^ f.infinity() : 0);
  plan.zero_subnormals = modes.denormals_are_zero;
  for (const bool negative : {false, true}) {
    const std::uint64_t sign = negative ? f.sign_mask() : 0;
    const auto wide = [&](std::uint64_t bits) {
      return static_cast<std::uint32_t>(convert(kBinary32, f, sign | bits, modes).bits);
    };
    plan.wide_infinity[negative] = wide(f.infinity());
    plan.wide_nan[negative] = wide(f.quiet_nan());
  }
  plan.payload = keeps_payload(f, modes);
  plan.smallest = smallest_subnormal(f);
  return plan;
}

/// Rounding the binary32 result to odd and then to f equals a single rounding for p <= 22 (Boldo
/// and Melquiond 2008), except stochastic rounding, which depends on every bit of the exact result.
bool can_compute(ArrayOperation operation, Format f, const Modes& modes) {
  const bool all_bits = modes.rounding == Rounding::stochastic;
  return can_narrow(f) && f.width == 16 && f.has_infinity() && 2 * f.precision <= 24 &&
         !(all_bits && operation != ArrayOperation::multiply);
}

ArithmeticPlan arithmetic_plan(Format f, const Modes& modes) {
  ArithmeticPlan plan = {};
  plan.format = f;
  plan.modes = modes;
  plan.wide = widening_plan(f, {});
  plan.narrow = narrowing_plan(f, modes);
  // denormals_are_zero does not apply to an intermediate result.
  plan.narrow.zero_below = 0;
  plan.exact_products = 2 * f.min_quantum_exponent() >= -149 && 2 * f.emax + 2 <= 127;
  plan.infinity = static_cast<std::uint16_t>(f.infinity());
  plan.quiet_bit = static_cast<std::uint16_t>(f.quiet_nan() ^ f.infinity());
  plan.zero_below =
      static_cast<std::uint16_t>(modes.denormals_are_zero ? f.fraction_mask() + 1 : 0);
  plan.default_nan = static_cast<std::uint16_t>(default_nan(f, modes));
  plan.propagate = modes.nan == NanPolicy::x86;
  return plan;
}

bool f16c_rounds(Format f, const Modes& modes) {
  const bool has_direction =
      modes.rounding == Rounding::ties_to_even || modes.rounding == Rounding::toward_zero ||
      modes.rounding == Rounding::upward || modes.rounding == Rounding::downward;
  return f == kBinary16 && has_direction && modes.tininess == Tininess::after_rounding &&
         !modes.denormals_are_zero && !modes.flush_to_zero && !modes.saturate;
}

RoundingControl control_of(Rounding rounding) {
  switch (rounding) {
    case Rounding::upward: return RoundingControl::up;
    case Rounding::downward: return RoundingControl::down;
    case Rounding::toward_zero: return RoundingControl::zero;
    default: return RoundingControl::nearest;
  }
}

}  // namespace halfscope
