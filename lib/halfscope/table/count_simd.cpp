// SPDX-License-Identifier: Apache-2.0
// The one pass over binary32 data, with run-time dispatch to the widest vectors.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halfscope/table/count_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "halfscope/table/count_binary32.hpp"

HWY_BEFORE_NAMESPACE();
namespace halfscope::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Words = hn::ScalableTag<std::uint32_t>;
using Vector = hn::Vec<Words>;

HWY_INLINE Vector load(const std::uint8_t* data) {  // at any alignment
#if HWY_TARGET == HWY_SCALAR
  std::uint32_t bits;
  std::memcpy(&bits, data, sizeof bits);
  return hn::Set(Words(), bits);
#else
  return hn::BitCast(Words(), hn::LoadU(hn::Repartition<std::uint8_t, Words>(), data));
#endif
}

/// Unsigned subtraction wraps, so that one comparison tests both ends of [first, first + length).
HWY_INLINE hn::Mask<Words> within(Vector x, Vector first, Vector length) {
  return hn::Lt(hn::Sub(x, first), length);
}

HWY_INLINE hn::Mask<Words> is_normal(Vector magnitude) {
  const Words d;
  return within(magnitude, hn::Set(d, 0x00800000u), hn::Set(d, 0x7F800000u - 0x00800000u));
}

/// The plan's rare fractions, in registers: in memory they might alias what a scan writes.
struct Rare {
  Vector first[kMaxRare], length[kMaxRare];
};

HWY_INLINE Rare rare_of(const Plan& plan) {
  Rare rare;
  for (std::size_t k = 0; k < kMaxRare; ++k) {
    rare.first[k] = hn::Set(Words(), plan.rare[k].first);
    rare.length[k] = hn::Set(Words(), plan.rare[k].length);
  }
  return rare;
}

HWY_INLINE std::uint32_t or_of_lanes(Vector x) {
  alignas(64) std::array<std::uint32_t, 64> each{};
  hn::Store(x, Words(), each.data());
  std::uint32_t all = 0;
  for (const std::uint32_t lane : each) all |= lane;
  return all;
}

/// What a scan finds beside the counts; fields as in Scratch.
struct Seen {
  Vector largest, smallest_less_one, fractions;

  HWY_INLINE bool only_normal_or_zero() const {
    return hn::GetLane(hn::MaxOfLanes(Words(), largest)) < 0x7F800000u &&
           hn::GetLane(hn::MinOfLanes(Words(), smallest_less_one)) >= 0x007FFFFFu;
  }
  HWY_INLINE void add_to(Scratch& scratch) const {
    const Words d;
    scratch.largest = std::max(scratch.largest, hn::GetLane(hn::MaxOfLanes(d, largest)));
    scratch.smallest_less_one =
        std::min(scratch.smallest_less_one, hn::GetLane(hn::MinOfLanes(d, smallest_less_one)));
    scratch.fractions |= or_of_lanes(fractions);
  }
};

HWY_INLINE Seen nothing_seen() {
  return {hn::Zero(Words()), hn::Set(Words(), 0xFFFFFFFFu), hn::Zero(Words())};
}

/// One vector: gathers its rare elements at `to`, returns how many. kAnything: elements may be
/// subnormal, infinite or NaN, and are gathered then.
template <bool kAnything>
HWY_INLINE std::size_t scan_vector(Vector bits, const Rare& rare, std::uint32_t* to, Seen& seen) {
  const Words d;
  const Vector magnitude = hn::And(bits, hn::Set(d, 0x7FFFFFFFu));
  Vector fraction = hn::And(bits, hn::Set(d, 0x007FFFFFu));
  auto gather = within(fraction, rare.first[0], rare.length[0]);
  for (std::size_t k = 1; k < kMaxRare; ++k) {
    gather = hn::Or(gather, within(fraction, rare.first[k], rare.length[k]));
  }
  Vector finite = magnitude;
  if constexpr (kAnything) {
    const auto normal = is_normal(magnitude);
    gather = hn::Or(gather, hn::Not(normal));
    fraction = hn::IfThenElseZero(normal, fraction);
    finite = hn::IfThenElseZero(hn::Lt(magnitude, hn::Set(d, 0x7F800000u)), magnitude);
  }
  gather = hn::And(gather, hn::Ne(magnitude, hn::Zero(d)));
  hn::StoreU(hn::Compress(bits, gather), d, to);
  seen.largest = hn::Max(seen.largest, finite);
  seen.smallest_less_one = hn::Min(seen.smallest_less_one, hn::Sub(magnitude, hn::Set(d, 1u)));
  seen.fractions = hn::Or(seen.fractions, fraction);
  return hn::CountTrue(d, gather);
}

/// Vector and scalar work in one loop, so that the processor does both at the same time.
HWY_INLINE std::size_t scan_normal(const std::uint8_t* data, std::size_t n, const Rare& intervals,
                                   Scratch& scratch, Seen& seen) {
  constexpr int kShift = 23 - kBinBits;
  const std::size_t lanes = hn::Lanes(Words());
  std::size_t rare = 0;
  for (std::size_t i = 0; i + lanes <= n; i += lanes) {
    rare += scan_vector<false>(load(data + 4 * i), intervals, scratch.rare.data() + rare, seen);
    for (std::size_t lane = 0; lane < lanes; lane += 2) {
      std::uint64_t two;
      std::memcpy(&two, data + 4 * (i + lane), sizeof two);
      ++scratch.coarse[static_cast<std::uint32_t>(two) >> kShift];
      ++scratch.coarse[two >> (32 + kShift)];
    }
  }
  return rare;
}

HWY_INLINE std::size_t scan_anything(const std::uint8_t* data, std::size_t n, const Rare& intervals,
                                     Scratch& scratch, Seen& seen) {
  const std::size_t lanes = hn::Lanes(Words());
  std::size_t rare = 0;
  for (std::size_t i = 0; i + lanes <= n; i += lanes) {
    rare += scan_vector<true>(load(data + 4 * i), intervals, scratch.rare.data() + rare, seen);
  }
  return rare;
}

void scan_block(const std::uint8_t* data, std::size_t n, const Plan& plan, Scratch& scratch) {
  const Rare intervals = rare_of(plan);
  Seen seen = nothing_seen();
  std::size_t rare = scan_normal(data, n, intervals, scratch, seen);
  if (!seen.only_normal_or_zero()) {  // rare in real tensors: look at the block again, with care
    seen = nothing_seen();
    rare = scan_anything(data, n, intervals, scratch, seen);
  }
  seen.add_to(scratch);
  scratch.rare_count = rare;
}

std::uint32_t smallest_low_bit(const std::uint8_t* data, std::size_t n) {
  const Words d;
  const hn::Repartition<float, Words> floats;
  const std::size_t lanes = hn::Lanes(d);
  const Vector infinity = hn::Set(d, 0x7F800000u);
  Vector smallest = infinity;
  for (std::size_t i = 0; i + lanes <= n; i += lanes) {
    const Vector magnitude = hn::And(load(data + 4 * i), hn::Set(d, 0x7FFFFFFFu));
    const Vector fraction = hn::And(magnitude, hn::Set(d, 0x007FFFFFu));
    // x less (x without its lowest fraction bit) is that bit, exactly; a power of two is its own.
    const Vector cleared =
        hn::And(magnitude, hn::Not(hn::AndNot(hn::Sub(fraction, hn::Set(d, 1u)), fraction)));
    const Vector bit =
        hn::BitCast(d, hn::Sub(hn::BitCast(floats, magnitude), hn::BitCast(floats, cleared)));
    const Vector low = hn::IfThenElse(hn::Eq(fraction, hn::Zero(d)), magnitude, bit);
    smallest = hn::Min(smallest, hn::IfThenElse(is_normal(magnitude), low, infinity));
  }
  return hn::GetLane(hn::MinOfLanes(d, smallest));
}

}  // namespace halfscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halfscope {

HWY_EXPORT(scan_block);
HWY_EXPORT(smallest_low_bit);

void scan_block(const std::byte* data, std::size_t n, const Plan& plan, Scratch& scratch) {
  HWY_DYNAMIC_DISPATCH(scan_block)
  (reinterpret_cast<const std::uint8_t*>(data), n, plan, scratch);
}

std::uint32_t smallest_low_bit(const std::byte* data, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(smallest_low_bit)(reinterpret_cast<const std::uint8_t*>(data), n);
}

}  // namespace halfscope
#endif
