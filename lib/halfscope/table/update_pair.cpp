// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/update_pair.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "halfscope/number/arithmetic.hpp"

namespace halfscope {
namespace {

__extension__ using Wide = unsigned __int128;

/// A signed sum of significand * 2^exponent, exactly: two's complement in units of 2^lowest.
/// 448 bits: weights of 16-bit formats lie in [2^-133, 2^128), and an update that does not
/// underflow is at least 2^-134, its lowest bit at least 2^-198.
class ExactSum {
 public:
  explicit ExactSum(int lowest) : lowest_(lowest) {}

  void add(const Unpacked& x, bool negate) {
    if (x.kind != Kind::finite) return;
    const auto shift = static_cast<std::size_t>(x.exponent - lowest_);
    const std::size_t limb = shift / 64;
    const Wide moved = static_cast<Wide>(x.significand) << (shift % 64);
    const std::array<std::uint64_t, 2> two = {static_cast<std::uint64_t>(moved),
                                              static_cast<std::uint64_t>(moved >> 64)};
    const bool subtract = x.negative != negate;
    unsigned carry = 0;
    for (std::size_t i = limb; i < limbs_.size(); ++i) {
      const std::uint64_t term = i - limb < 2 ? two[i - limb] : 0;
      limbs_[i] = subtract ? less(limbs_[i], term, carry) : plus(limbs_[i], term, carry);
    }
  }

  /// |sum| / 2^lowest's leading bit, and the 64 bits that begin with it; none for zero.
  std::optional<Leading> leading() {
    if (limbs_.back() >> 63 != 0) negate();
    for (std::size_t i = limbs_.size(); i-- > 0;) {
      if (limbs_[i] == 0) continue;
      const int width = detail::bit_width(limbs_[i]);
      const std::uint64_t below = i == 0 || width == 64 ? 0 : limbs_[i - 1] >> width;
      return Leading{lowest_ + static_cast<int>(64 * i) + width - 1,
                     (limbs_[i] << (64 - width)) | below};
    }
    return std::nullopt;
  }

 private:
  static std::uint64_t plus(std::uint64_t a, std::uint64_t b, unsigned& carry) {
    const Wide sum = static_cast<Wide>(a) + b + carry;
    carry = static_cast<unsigned>(sum >> 64);
    return static_cast<std::uint64_t>(sum);
  }
  static std::uint64_t less(std::uint64_t a, std::uint64_t b, unsigned& borrow) {
    const Wide difference = static_cast<Wide>(a) - b - borrow;
    borrow = static_cast<unsigned>(difference >> 64) & 1;
    return static_cast<std::uint64_t>(difference);
  }
  void negate() {
    unsigned carry = 1;
    for (std::uint64_t& limb : limbs_) limb = plus(~limb, 0, carry);
  }

  int lowest_;
  std::array<std::uint64_t, 7> limbs_ = {};  // the lowest first
};

/// |w_new - w16 - u|; none where it is zero. The first 64 bits suffice for what is asked of it:
/// against |u|, which has no more, those below can only confirm "not less".
std::optional<Leading> error_of(Format f, std::uint64_t w_new, std::uint64_t w16,
                                const Unpacked& u) {
  const Unpacked after = unpack(f, w_new), before = unpack(f, w16);
  ExactSum sum(std::min(u.exponent, f.min_quantum_exponent()));
  sum.add(after, false);
  sum.add(before, true);
  sum.add(u, true);
  return sum.leading();
}

/// floor(log2(a / b)).
int log2_of_ratio(const Leading& a, const Leading& b) {
  return a.binade - b.binade - (a.significand < b.significand ? 1 : 0);
}

struct Moved {
  Outcome outcome;
  std::optional<Leading> error;
};

Moved outcome_of_sum(Format f, std::uint64_t w16, std::uint64_t w_new, const Unpacked& u) {
  const std::uint64_t magnitude = w_new & f.magnitude_mask();
  if (magnitude > f.largest_finite()) return {Outcome::overflow, {}};
  if (w_new == w16 || (magnitude == 0 && (w16 & f.magnitude_mask()) == 0)) {
    return {Outcome::swamped, {}};
  }
  const std::optional<Leading> error = error_of(f, w_new, w16, u);
  return {error ? Outcome::applied : Outcome::exact, error};
}

Moved in_half(Format f, std::uint64_t w16, const Unpacked& u) {
  const std::uint64_t u16 = round_pack(f, u.negative, u.significand, u.exponent).bits;
  if ((u16 & f.magnitude_mask()) == 0) return {Outcome::underflow, {}};
  return outcome_of_sum(f, w16, add(f, w16, u16).bits, u);
}

Outcome fused(Format f, std::uint64_t w16, const Update& u) {
  if ((u.binary32 & kBinary32.magnitude_mask()) == 0) return Outcome::underflow;
  const std::uint64_t w32 = convert(kBinary32, f, w16).bits;
  const std::uint64_t sum = add(kBinary32, w32, u.binary32).bits;
  return outcome_of_sum(f, w16, convert(f, kBinary32, sum).bits, u.exact).outcome;
}

void count(UpdateOutcomes& outcomes, Outcome outcome) {
  switch (outcome) {
    case Outcome::underflow: ++outcomes.underflow; return;
    case Outcome::swamped: ++outcomes.swamped; return;
    case Outcome::applied: ++outcomes.applied; return;
    case Outcome::exact: ++outcomes.exact; return;
    case Outcome::overflow: ++outcomes.overflow; return;
  }
}

bool is_power_of_two(const Unpacked& x) { return (x.significand & (x.significand - 1)) == 0; }

/// RN32(a / b), b finite and nonzero: long division, the remainder kept as a sticky bit.
Unpacked quotient(const Unpacked& a, const Unpacked& b) {
  const Leading x = leading_of(a), y = leading_of(b);
  const Wide numerator = static_cast<Wide>(x.significand) << 63;
  const auto digits = static_cast<std::uint64_t>(numerator / y.significand);  // 63 bits or 64
  const bool more = numerator % y.significand != 0;
  const Rounded rounded = round_pack(kBinary32, a.negative != b.negative, digits | (more ? 1 : 0),
                                     x.binade - y.binade - 63);
  return unpack(kBinary32, rounded.bits);
}

}  // namespace

void require_weight_format(Format f) {
  if (f == kBinary16 || f == kBfloat16) return;
  throw std::invalid_argument("updates: weights of " + std::to_string(f.width) +
                              " bits, precision " + std::to_string(f.precision) +
                              "; want binary16 or bfloat16");
}

Update recorded_update(Format from, std::uint64_t bits) {
  return {unpack(from, bits), convert(kBinary32, from, bits).bits};
}

SgdStep::SgdStep(double lr, double scale)
    : rate_(from_double(kBinary32, lr).bits),
      scale_(unpack(kBinary64, detail::bit_cast<std::uint64_t>(scale))),
      scale_is_power_of_two_(scale_.kind == Kind::finite && is_power_of_two(scale_)),
      scale_is_one_(scale == 1) {
  if ((rate_ & kBinary32.magnitude_mask()) > kBinary32.largest_finite()) {
    throw std::invalid_argument("updates: the learning rate is " + std::to_string(lr) +
                                ", want a number that is finite in binary32");
  }
  if (scale_.kind != Kind::finite || scale_.negative) {
    throw std::invalid_argument("updates: the scale is " + std::to_string(scale) +
                                ", want a positive finite number");
  }
}

/// Exact where that asks for no more than binary32's 24 bits, else rounded to binary32.
Unpacked SgdStep::unscaled(Format from, std::uint64_t gradient) const {
  const Unpacked g = unpack(from, gradient);
  if (g.kind != Kind::finite) return g;
  if (!scale_is_power_of_two_) return quotient(g, scale_);
  const int shift = leading_of(scale_).binade;
  Unpacked exact = {g.kind, g.negative, g.significand, g.exponent - shift};
  if (from.precision <= kBinary32.precision) return exact;
  return unpack(kBinary32,
                round_pack(kBinary32, exact.negative, exact.significand, exact.exponent).bits);
}

Update SgdStep::update(Format from, std::uint64_t gradient) const {
  const Unpacked g = unscaled(from, gradient), rate = unpack(kBinary32, rate_);
  const bool negative = g.negative == rate.negative;
  if (g.kind == Kind::nan || g.kind == Kind::infinity) {
    return {{g.kind, negative, 0, 0}, kBinary32.quiet_nan()};
  }
  const std::uint64_t sign = negative ? kBinary32.sign_mask() : 0;
  if (g.kind == Kind::zero || rate.kind == Kind::zero) return {{Kind::zero, negative, 0, 0}, sign};
  const std::uint64_t g32 = round_pack(kBinary32, g.negative, g.significand, g.exponent).bits;
  return {{Kind::finite, negative, g.significand * rate.significand, g.exponent + rate.exponent},
          multiply(kBinary32, rate_, g32).bits ^ kBinary32.sign_mask()};
}

PairOutcome outcome_of(Format f, std::uint64_t w16, const Update& u) {
  const Leading update = leading_of(u.exact);
  const Unpacked w = unpack(f, w16);
  const Moved half = in_half(f, w16, u.exact);
  PairOutcome result = {half.outcome, fused(f, w16, u), false, update.binade, {}, {}, {}};
  if (half.error) result.error = log2_of_ratio(*half.error, update);
  if (w.kind == Kind::zero) {
    result.weight_binade = UpdateTable::kZeroWeight;
    return result;
  }
  const Leading weight = leading_of(w);
  result.weight_binade = weight.binade;
  result.ratio = log2_of_ratio(update, weight);
  result.rule = weight > Leading{update.binade + f.precision, update.significand};
  return result;
}

void add_pair(UpdateTable& table, Format f, std::uint64_t w16, const Update& u,
              bool distributions) {
  UpdateCounts& counts = table.counts;
  ++counts.pairs;
  const bool weight_is_finite = (w16 & f.magnitude_mask()) <= f.largest_finite();
  if (!weight_is_finite || u.exact.kind == Kind::infinity || u.exact.kind == Kind::nan) {
    ++counts.nonfinite;
    return;
  }
  if (u.exact.kind == Kind::zero) {
    ++counts.zero;
    return;
  }
  const PairOutcome pair = outcome_of(f, w16, u);
  count(counts.half, pair.half);
  count(counts.fused, pair.fused);
  if (pair.rule) ++counts.rule_2048;
  if (!distributions) return;
  const bool lost = pair.half == Outcome::underflow || pair.half == Outcome::swamped;
  const UpdateCell cell = {1, lost ? 1u : 0u};
  table.cells[{pair.weight_binade, pair.update_binade}] += cell;
  if (pair.ratio) table.ratios[*pair.ratio] += cell;
  if (pair.error) ++table.errors[*pair.error];
}

}  // namespace halfscope
