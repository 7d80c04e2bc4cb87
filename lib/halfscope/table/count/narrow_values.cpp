// SPDX-License-Identifier: Apache-2.0
// Tests on the bits of binary32. A normal number of the narrow format has zeros in the bits that
// the format lacks. A magnitude x below the smallest normal number is a subnormal of the format if
// it is a multiple of the format's quantum q: with the power of two M whose ulp is q, fl(x + M) - M
// equals x exactly if x is one. Plain loops: compilers make vector code of them.
#include "halfscope/table/count/narrow_values.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <stdexcept>

namespace halfscope {
namespace {

constexpr std::int32_t bits_of_power(int exponent) {
  return (exponent + kBinary32.emax) << kBinary32.fraction_bits();
}

/// Returns 1 if a finite nonzero magnitude is a number of the format, else 0.
template <Format f>
std::int32_t is_number(std::int32_t magnitude) {
  constexpr int kLacking = kBinary32.precision - f.precision;
  constexpr auto kLargest =
      bits_of_power(f.emax) +
      static_cast<std::int32_t>((f.largest_finite() & f.fraction_mask()) << kLacking);
  const std::int32_t lacks = (magnitude & ((1 << kLacking) - 1)) == 0;
  // Its exponents are those of binary32, so that subnormals lack the same bits.
  if constexpr (f.emin() == kBinary32.emin()) return lacks & (magnitude <= kLargest);
  constexpr int kMagic = f.min_quantum_exponent() + kBinary32.fraction_bits();
  const auto magic = std::bit_cast<float>(bits_of_power(kMagic));
  const auto x = std::bit_cast<float>(magnitude);
  const std::int32_t multiple = (x + magic) - magic == x;
  const std::int32_t normal = magnitude >= bits_of_power(f.emin());
  return (magnitude <= kLargest) & ((normal & lacks) | (~normal & multiple));
}

constexpr std::int32_t kInfinity = bits_of_power(kBinary32.emax + 1);

void add_exact(std::span<const std::int32_t> values, NarrowCounts& to) {
  std::int32_t e4m3 = 0, bf16 = 0, f16 = 0;
  for (const std::int32_t bits : values) {
    const std::int32_t magnitude = bits & 0x7fffffff;
    const std::int32_t finite = (magnitude != 0) & (magnitude < kInfinity);
    e4m3 += finite & is_number<kNarrowFormats[0]>(magnitude);
    bf16 += finite & is_number<kNarrowFormats[1]>(magnitude);
    f16 += finite & is_number<kNarrowFormats[2]>(magnitude);
  }
  to.exact[0] += static_cast<std::uint64_t>(e4m3);
  to.exact[1] += static_cast<std::uint64_t>(bf16);
  to.exact[2] += static_cast<std::uint64_t>(f16);
}

/// Adds few values: in most blocks of a healthy tensor none is a number of a narrow format, since
/// all of these lack the bits that binary16 lacks.
void add(std::span<const std::int32_t> values, std::int32_t first, NarrowCounts& to) {
  constexpr int kLacking = kBinary32.precision - kBinary16.precision;
  std::int32_t zero = 0, number = 0, lacks = 0, differs = 0;
  for (const std::int32_t bits : values) {
    const std::int32_t magnitude = bits & 0x7fffffff;
    zero += magnitude == 0;
    number += magnitude < kInfinity;
    lacks += (bits & ((1 << kLacking) - 1)) == 0;
    differs |= bits ^ first;
  }
  to.total += values.size();
  to.zero += static_cast<std::uint64_t>(zero);
  to.finite_nonzero += static_cast<std::uint64_t>(number - zero);
  to.constant = to.constant && differs == 0;
  if (lacks > zero) add_exact(values, to);
}

}  // namespace

NarrowCounts count_narrow_values(const TensorView& tensor) {
  if (tensor.dtype != Dtype::f32) {
    throw std::invalid_argument("count_narrow_values: expected a binary32 tensor");
  }
  NarrowCounts counts;
  std::array<std::int32_t, 512> block;  // aligned, as the tensor may not be
  std::int32_t first = 0;
  if (tensor.count > 0) std::memcpy(&first, tensor.data, sizeof first);
  for (std::size_t i = 0; i < tensor.count; i += block.size()) {
    const std::size_t n = std::min(block.size(), tensor.count - i);
    std::memcpy(block.data(), tensor.data + 4 * i, 4 * n);
    add({block.data(), n}, first, counts);
  }
  return counts;
}

NarrowCounts& NarrowCounts::operator+=(const NarrowCounts& other) {
  total += other.total;
  zero += other.zero;
  finite_nonzero += other.finite_nonzero;
  for (std::size_t i = 0; i < exact.size(); ++i) exact[i] += other.exact[i];
  constant = constant && other.constant;
  return *this;
}

}  // namespace halfscope
