// SPDX-License-Identifier: Apache-2.0
// Magnitudes of a format have the order of their bits, followed by infinity and NaN.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halfscope/table/count/largest_magnitude.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "halfscope/number/convert.hpp"
#include "halfscope/table/count/element.hpp"
#include "halfscope/table/count/largest_magnitude.hpp"

HWY_BEFORE_NAMESPACE();
namespace halfscope::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename Bits>
HWY_INLINE hn::Vec<hn::ScalableTag<Bits>> bits_at(const std::uint8_t* data) {
  const hn::ScalableTag<Bits> d;
#if HWY_TARGET == HWY_SCALAR
  Bits bits;
  std::memcpy(&bits, data, sizeof bits);
  return hn::Set(d, bits);
#else
  return hn::BitCast(d, hn::LoadU(hn::Repartition<std::uint8_t, decltype(d)>(), data));
#endif
}

/// Processes four vectors at a time, each with its own maximum.
template <typename Bits>
HWY_INLINE std::uint64_t largest(const std::uint8_t* data, std::size_t n) {
  const hn::ScalableTag<Bits> d;
  const std::size_t lanes = hn::Lanes(d);
  const auto without_sign = hn::Set(d, static_cast<Bits>(static_cast<Bits>(~Bits{0}) >> 1));
  auto a = hn::Zero(d), b = a, c = a, e = a;
  const auto magnitude = [&](std::size_t i) HWY_ATTR {
    return hn::And(bits_at<Bits>(data + i * sizeof(Bits)), without_sign);
  };
  std::size_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Max(a, magnitude(i));
    b = hn::Max(b, magnitude(i + lanes));
    c = hn::Max(c, magnitude(i + 2 * lanes));
    e = hn::Max(e, magnitude(i + 3 * lanes));
  }
  for (; i + lanes <= n; i += lanes) a = hn::Max(a, magnitude(i));
  alignas(64) std::array<Bits, 64 / sizeof(Bits)> each{};
  hn::StoreU(hn::Max(hn::Max(a, b), hn::Max(c, e)), d, each.data());
  Bits most = *std::max_element(each.begin(), each.end());
  for (; i < n; ++i) {
    Bits bits;
    std::memcpy(&bits, data + i * sizeof bits, sizeof bits);
    most = std::max(most, static_cast<Bits>(bits & (static_cast<Bits>(~Bits{0}) >> 1)));
  }
  return most;
}

std::uint64_t largest_bits(int width, const std::uint8_t* data, std::size_t n) {
  switch (width) {
    case 8: return largest<std::uint8_t>(data, n);
    case 16: return largest<std::uint16_t>(data, n);
    case 32: return largest<std::uint32_t>(data, n);
    default: return largest<std::uint64_t>(data, n);
  }
}

}  // namespace halfscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halfscope {

HWY_EXPORT(largest_bits);

double largest_magnitude(const TensorView& tensor) {
  const Format f = format_of(tensor.dtype);
  const auto* const data = reinterpret_cast<const std::uint8_t*>(tensor.data);
  return to_double(f, HWY_DYNAMIC_DISPATCH(largest_bits)(f.width, data, tensor.count));
}

}  // namespace halfscope
#endif
