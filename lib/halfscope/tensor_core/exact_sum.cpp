// SPDX-License-Identifier: Apache-2.0
#include "halfscope/tensor_core/exact_sum.hpp"

#include "halfscope/number/convert.hpp"

namespace halfscope::tensor_core {
namespace {

constexpr std::uint64_t kDigitMask = 0xFFFFFFFF;

Unpacked unpacked(float x) {
  return unpack(kBinary32, halfscope::detail::bit_cast<std::uint32_t>(x));
}

}  // namespace

void ExactSum::add_product(float a, float b) {
  const Unpacked x = unpacked(a), y = unpacked(b);
  const bool negative = x.negative != y.negative;
  if (x.kind > Kind::finite || y.kind > Kind::finite) {
    const bool zero = x.kind == Kind::zero || y.kind == Kind::zero;
    if (zero || x.kind == Kind::nan || y.kind == Kind::nan) nan_ = true;
    (negative ? minus_ : plus_) = true;
    return;
  }
  if (x.kind == Kind::zero || y.kind == Kind::zero) return;
  const std::uint64_t product = x.significand * y.significand;  // 48 bits
  const int place = x.exponent + y.exponent - kLeastExponent, shift = place % 32;
  const std::uint64_t low = (product & kDigitMask) << shift, high = product >> 32 << shift;
  const std::uint64_t parts[] = {low & kDigitMask, (low >> 32) + (high & kDigitMask), high >> 32};
  std::int64_t* digit = &digits_[static_cast<std::size_t>(place / 32)];
  for (const std::uint64_t part : parts) {
    const auto value = static_cast<std::int64_t>(part);
    *digit++ += negative ? -value : value;
  }
  if (++waiting_ == 1 << 28) carry();
}

/// All digits but the highest become those of a number of 32 bits.
void ExactSum::carry() {
  for (std::size_t i = 0; i + 1 < kDigits; ++i) {
    const std::int64_t up = digits_[i] >> 32;  // rounded down
    digits_[i + 1] += up;
    digits_[i] -= up * (std::int64_t{1} << 32);
  }
  waiting_ = 0;
}

Rounded ExactSum::rounded(Format f) const {
  if (nan_ || (plus_ && minus_)) return {f.magnitude_mask(), {.invalid = true}};
  if (plus_ || minus_) return {f.infinity() | (minus_ ? f.sign_mask() : 0), {}};
  ExactSum sum = *this;
  sum.carry();
  const bool negative = sum.digits_.back() < 0;
  if (negative) {
    for (std::int64_t& digit : sum.digits_) digit = -digit;
    sum.carry();
  }
  std::size_t top = kDigits - 1;
  while (top > 1 && sum.digits_[top] == 0) --top;
  // Two digits and a sticky bit from below: 33 bits or more, if there is any below.
  std::uint64_t significand = static_cast<std::uint64_t>(sum.digits_[top]) << 32 |
                              static_cast<std::uint64_t>(sum.digits_[top - 1]);
  for (std::size_t i = 0; i + 1 < top; ++i) significand |= sum.digits_[i] != 0 ? 1 : 0;
  if (significand == 0) return {0, {}};
  return round_pack(f, negative, significand, kLeastExponent + 32 * (static_cast<int>(top) - 1));
}

}  // namespace halfscope::tensor_core
