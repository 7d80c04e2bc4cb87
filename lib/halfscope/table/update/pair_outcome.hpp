// SPDX-License-Identifier: Apache-2.0
// The exact outcome of one update of one weight; for host and device. Internal to table/.
// docs/numerics/counting.md, "Swamped updates".
#pragma once

#include <cstdint>

#include "halfscope/number/arithmetic.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/table/update/update_table.hpp"

namespace halfscope {

/// An update as a real number, and rounded to binary32.
struct Update {
  Unpacked exact;
  std::uint64_t binary32;
};

/// Returns a recorded update: an encoding of format `from`.
HALFSCOPE_HD constexpr Update recorded_update(Format from, std::uint64_t bits) {
  return {unpack(from, bits), convert(kBinary32, from, bits).bits};
}

enum class Outcome : std::uint8_t { underflow, swamped, applied, exact, overflow };

/// Stands for floor(log2) of zero or of a value that is not computed.
inline constexpr int kNoBinade = UpdateTable::kZeroWeight;

/// The outcome of a finite nonzero update of a finite weight.
struct PairOutcome {
  Outcome half, fused;
  bool rule;          ///< |w16| > 2^p |u|
  int update_binade;  ///< floor(log2 |u|)
  int weight_binade;  ///< kNoBinade for a zero weight
  int ratio;          ///< floor(log2(|u| / |w16|)); kNoBinade for a zero weight
  int error;          ///< floor(log2(relative error)) of an applied `half`, or kNoBinade

  HALFSCOPE_HD constexpr bool lost() const {
    return half == Outcome::underflow || half == Outcome::swamped;
  }
};

/// floor(log2 |x|) and significand of a finite x, with its leading bit at bit 63; or zero.
struct Leading {
  int binade;
  std::uint64_t significand;

  HALFSCOPE_HD constexpr bool is_zero() const { return significand == 0; }
};
HALFSCOPE_HD constexpr Leading leading_of(const Unpacked& x) {
  const int width = detail::bit_width(x.significand);
  return {x.exponent + width - 1, x.significand << ((64 - width) & 63)};  // a shift by 0 for zero
}

namespace detail {

/// An exact signed sum of significand * 2^exponent: two's complement in units of 2^lowest. 448 bits
/// suffice: weights of 16-bit formats are in [2^-133, 2^128), and an update that does not underflow
/// is at least 2^-134, its lowest bit at least 2^-198.
class ExactSum {
 public:
  HALFSCOPE_HD explicit ExactSum(int lowest) : lowest_(lowest) {}

  HALFSCOPE_HD void add(const Unpacked& x, bool negate) {
    if (x.kind != Kind::finite) return;
    const int shift = x.exponent - lowest_, within = shift % 64;
    const std::uint64_t low = x.significand << within;
    const std::uint64_t high = within == 0 ? 0 : x.significand >> (64 - within);
    const bool subtract = x.negative != negate;
    unsigned carry = subtract ? 1 : 0;  // -y is ~y + 1
    for (int i = 0; i < kLimbs; ++i) {
      const std::uint64_t term = i == shift / 64 ? low : i == shift / 64 + 1 ? high : 0;
      limbs_[i] = plus(limbs_[i], subtract ? ~term : term, carry);
    }
  }

  /// Returns the leading bit of |sum| and the 64 bits that begin with it.
  HALFSCOPE_HD Leading leading() {
    if (limbs_[kLimbs - 1] >> 63 != 0) negate();
    for (int i = kLimbs - 1; i >= 0; --i) {
      if (limbs_[i] == 0) continue;
      const int width = bit_width(limbs_[i]);
      const std::uint64_t below = i == 0 || width == 64 ? 0 : limbs_[i - 1] >> width;
      return {lowest_ + 64 * i + width - 1, (limbs_[i] << (64 - width)) | below};
    }
    return {0, 0};
  }

 private:
  static constexpr int kLimbs = 7;

  HALFSCOPE_HD static std::uint64_t plus(std::uint64_t a, std::uint64_t b, unsigned& carry) {
    const std::uint64_t sum = a + b, all = sum + carry;
    carry = sum < a || all < sum ? 1 : 0;
    return all;
  }
  HALFSCOPE_HD void negate() {
    unsigned carry = 1;
    for (std::uint64_t& limb : limbs_) limb = plus(~limb, 0, carry);
  }

  int lowest_;
  std::uint64_t limbs_[kLimbs] = {};  // the lowest first
};

/// |w_new - w16 - u|. The first 64 bits suffice for the comparison with |u|, which has no more
/// bits: lower bits can only confirm "not less".
HALFSCOPE_HD inline Leading error_of(Format f, std::uint64_t w_new, std::uint64_t w16,
                                     const Unpacked& u) {
  const int least = f.min_quantum_exponent();
  ExactSum sum(u.exponent < least ? u.exponent : least);
  sum.add(unpack(f, w_new), false);
  sum.add(unpack(f, w16), true);
  sum.add(u, true);
  return sum.leading();
}

/// floor(log2(a / b)).
HALFSCOPE_HD constexpr int log2_of_ratio(const Leading& a, const Leading& b) {
  return a.binade - b.binade - (a.significand < b.significand ? 1 : 0);
}

struct Moved {
  Outcome outcome;
  Leading error;  ///< nonzero only for Outcome::applied
};

HALFSCOPE_HD inline Moved outcome_of_sum(Format f, std::uint64_t w16, std::uint64_t w_new,
                                         const Unpacked& u) {
  const std::uint64_t magnitude = w_new & f.magnitude_mask();
  if (magnitude > f.largest_finite()) return {Outcome::overflow, {0, 0}};
  if (w_new == w16 || (magnitude == 0 && (w16 & f.magnitude_mask()) == 0)) {
    return {Outcome::swamped, {0, 0}};
  }
  const Leading error = error_of(f, w_new, w16, u);
  return {error.is_zero() ? Outcome::exact : Outcome::applied, error};
}

HALFSCOPE_HD inline Moved outcome_in_half(Format f, std::uint64_t w16, const Unpacked& u) {
  const std::uint64_t u16 = round_pack(f, u.negative, u.significand, u.exponent).bits;
  if ((u16 & f.magnitude_mask()) == 0) return {Outcome::underflow, {0, 0}};
  return outcome_of_sum(f, w16, halfscope::add(f, w16, u16).bits, u);
}

HALFSCOPE_HD inline Outcome outcome_fused(Format f, std::uint64_t w16, const Update& u) {
  if ((u.binary32 & kBinary32.magnitude_mask()) == 0) return Outcome::underflow;
  const std::uint64_t w32 = convert(kBinary32, f, w16).bits;
  const std::uint64_t sum = halfscope::add(kBinary32, w32, u.binary32).bits;
  return outcome_of_sum(f, w16, convert(f, kBinary32, sum).bits, u.exact).outcome;
}

}  // namespace detail

/// w16: a finite encoding of f. u.exact.kind must be finite.
HALFSCOPE_HD inline PairOutcome outcome_of(Format f, std::uint64_t w16, const Update& u) {
  const Leading update = leading_of(u.exact);
  const detail::Moved half = detail::outcome_in_half(f, w16, u.exact);
  PairOutcome result = {
      half.outcome, detail::outcome_fused(f, w16, u), false, update.binade, kNoBinade, kNoBinade,
      kNoBinade};
  if (!half.error.is_zero()) result.error = detail::log2_of_ratio(half.error, update);
  const Unpacked w = unpack(f, w16);
  if (w.kind == Kind::zero) return result;
  const Leading weight = leading_of(w);
  const int limit = update.binade + f.precision;
  result.weight_binade = weight.binade;
  result.ratio = detail::log2_of_ratio(update, weight);
  result.rule =
      weight.binade > limit || (weight.binade == limit && weight.significand > update.significand);
  return result;
}

}  // namespace halfscope
