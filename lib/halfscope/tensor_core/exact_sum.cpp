// SPDX-License-Identifier: Apache-2.0
#include "halfscope/tensor_core/exact_sum.hpp"

#include "halfscope/number/round.hpp"

namespace halfscope::tensor_core {

/// Adds a product in which an operand is NaN or infinite.
void ExactSum::add_special(std::uint32_t x, std::uint32_t y) {
  const std::uint32_t sizes[] = {x & 0x7FFFFFFF, y & 0x7FFFFFFF};
  for (const std::uint32_t size : sizes) nan_ |= size == 0 || size > 0x7F800000;
  ((x ^ y) >> 31 != 0 ? minus_ : plus_) = true;
}

/// Propagates carries: all digits except the highest become nonnegative and below 2^32.
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
  // Two digits, and a sticky bit for all lower digits: at least 33 bits if there are lower digits.
  std::uint64_t significand = static_cast<std::uint64_t>(sum.digits_[top]) << 32 |
                              static_cast<std::uint64_t>(sum.digits_[top - 1]);
  for (std::size_t i = 0; i + 1 < top; ++i) significand |= sum.digits_[i] != 0 ? 1 : 0;
  if (significand == 0) return {0, {}};
  return round_pack(f, negative, significand, kLeastExponent + 32 * (static_cast<int>(top) - 1));
}

}  // namespace halfscope::tensor_core
