// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/update/update_pair.hpp"

#include <stdexcept>
#include <string>

#include "halfscope/number/arithmetic.hpp"

namespace halfscope {
namespace {

__extension__ using Wide = unsigned __int128;

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

/// RN32(a / b) for finite nonzero b: long division, with the remainder as a sticky bit.
Unpacked quotient(const Unpacked& a, const Unpacked& b) {
  const Leading x = leading_of(a), y = leading_of(b);
  const Wide numerator = static_cast<Wide>(x.significand) << 63;
  // NOLINTNEXTLINE(clang-analyzer-core.DivideZero): b is not zero
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
                              "; expected binary16 or bfloat16");
}

SgdStep::SgdStep(double lr, double scale)
    : rate_(from_double(kBinary32, lr).bits),
      scale_(unpack(kBinary64, detail::bit_cast<std::uint64_t>(scale))),
      scale_is_power_of_two_(scale_.kind == Kind::finite && is_power_of_two(scale_)),
      scale_is_one_(scale == 1) {
  if ((rate_ & kBinary32.magnitude_mask()) > kBinary32.largest_finite()) {
    throw std::invalid_argument("updates: the learning rate is " + std::to_string(lr) +
                                ", expected a number that is finite in binary32");
  }
  if (scale_.kind != Kind::finite || scale_.negative) {
    throw std::invalid_argument("updates: the scale is " + std::to_string(scale) +
                                ", expected a positive finite number");
  }
}

/// Exact if the result fits in binary32's 24 bits, else rounded to binary32.
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
  const UpdateCell cell = {1, pair.lost() ? 1u : 0u};
  table.cells[{pair.weight_binade, pair.update_binade}] += cell;
  if (pair.ratio != kNoBinade) table.ratios[pair.ratio] += cell;
  if (pair.error != kNoBinade) ++table.errors[pair.error];
}

}  // namespace halfscope
