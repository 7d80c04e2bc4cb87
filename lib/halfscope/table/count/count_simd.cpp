// SPDX-License-Identifier: Apache-2.0
// Parts of the pass for every processor, with run-time dispatch to the widest vectors; and the pass
// over binary32 blocks on those without the kernel of count_hot.cpp.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halfscope/table/count/count_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "halfscope/table/count/count_blocks.hpp"

HWY_BEFORE_NAMESPACE();
namespace halfscope::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Words = hn::ScalableTag<std::uint32_t>;
using Integers = hn::RebindToSigned<Words>;
using Floats = hn::RebindToFloat<Words>;
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

HWY_INLINE Vector magnitude_of(Vector bits) { return hn::And(bits, hn::Set(Words(), 0x7FFFFFFFu)); }

HWY_INLINE Vector fraction_of(Vector bits) { return hn::And(bits, hn::Set(Words(), 0x007FFFFFu)); }

/// The bits of integers below 2^24 as floats: exact.
HWY_INLINE Vector float_of(Vector integer) {
  return hn::BitCast(Words(), hn::ConvertTo(Floats(), hn::BitCast(Integers(), integer)));
}

/// A magnitude's row, and 23 bits of fraction. A subnormal is an integer times 2^-149: as a float
/// the integer has its fraction, and its row plus 126. Zero comes to kZeroRow that way.
HWY_INLINE Vector with_row(Vector magnitude) {
  const Words d;
  const Vector normal = hn::Add(magnitude, hn::Set(d, kToRow));
  const Vector subnormal = hn::Sub(float_of(fraction_of(magnitude)), hn::Set(d, 126u << 23));
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x00800000u)), subnormal, normal);
}

HWY_INLINE hn::Mask<Words> is_finite_nonzero(Vector row_and_fraction) {
  return hn::Lt(row_and_fraction, hn::Set(Words(), kSpecialRow << 23));
}

/// The plan's rare fractions, in registers: in memory they might alias what a scan writes.
struct Rare {
  Vector first[kMaxRare], length[kMaxRare];
  HWY_INLINE Rare() {}  // g++'s own would lack the target's instructions: an error on aarch64
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

struct SeenLanes {
  Vector largest, smallest_less_one, fractions;

  HWY_INLINE void see(Vector finite, Vector less_one, Vector fraction) {
    largest = hn::Max(largest, finite);
    smallest_less_one = hn::Min(smallest_less_one, less_one);
    fractions = hn::Or(fractions, fraction);
  }
  HWY_INLINE Seen total() const {
    const Words d;
    return {hn::GetLane(hn::MaxOfLanes(d, largest)),
            hn::GetLane(hn::MinOfLanes(d, smallest_less_one)), or_of_lanes(fractions)};
  }
};

HWY_INLINE SeenLanes nothing_seen() {
  return {hn::Zero(Words()), hn::Set(Words(), 0xFFFFFFFFu), hn::Zero(Words())};
}

/// One vector: gathers its rare elements at `to`, returns how many. kAnything: elements may be
/// subnormal, infinite or NaN, and are gathered then.
template <bool kAnything>
HWY_INLINE std::size_t gather(Vector bits, const Rare& rare, std::uint32_t* to) {
  const Words d;
  const Vector magnitude = magnitude_of(bits);
  const Vector fraction = fraction_of(bits);
  auto wanted = within(fraction, rare.first[0], rare.length[0]);
  for (std::size_t k = 1; k < kMaxRare; ++k) {
    wanted = hn::Or(wanted, within(fraction, rare.first[k], rare.length[k]));
  }
  if constexpr (kAnything) wanted = hn::Or(wanted, hn::Not(is_normal(magnitude)));
  wanted = hn::And(wanted, hn::Ne(magnitude, hn::Zero(d)));
  hn::StoreU(hn::Compress(bits, wanted), d, to);
  return hn::CountTrue(d, wanted);
}

/// Vector and scalar work in one loop, so that the processor does both at the same time.
HWY_INLINE std::size_t scan_normal(const std::uint8_t* data, std::size_t n, const Rare& intervals,
                                   Scratch& scratch) {
  constexpr int kShift = 23 - kCoarseBits;
  const Words d;
  const std::size_t lanes = hn::Lanes(d);
  SeenLanes seen = nothing_seen();
  std::size_t rare = 0;
  for (std::size_t i = 0; i + lanes <= n; i += lanes) {
    const Vector bits = load(data + 4 * i);
    const Vector magnitude = magnitude_of(bits);
    seen.see(magnitude, hn::Sub(magnitude, hn::Set(d, 1u)), fraction_of(bits));
    rare += gather<false>(bits, intervals, scratch.gathered.data() + rare);
#if HWY_TARGET == HWY_SCALAR
    ++scratch.coarse[bits.raw >> kShift];
#else
    for (std::size_t lane = 0; lane < lanes; lane += 2) {
      std::uint64_t two;
      std::memcpy(&two, data + 4 * (i + lane), sizeof two);
      ++scratch.coarse[static_cast<std::uint32_t>(two) >> kShift];
      ++scratch.coarse[two >> (32 + kShift)];
    }
#endif
  }
  scratch.seen = seen.total();
  return rare;
}

HWY_INLINE std::size_t gather_anything(const std::uint8_t* data, std::size_t n,
                                       const Rare& intervals, Scratch& scratch) {
  const std::size_t lanes = hn::Lanes(Words());
  std::size_t rare = 0;
  for (std::size_t i = 0; i + lanes <= n; i += lanes) {
    rare += gather<true>(load(data + 4 * i), intervals, scratch.gathered.data() + rare);
  }
  return rare;
}

void count_coarse(const std::uint8_t* data, std::size_t n, const Plan& plan, Scratch& scratch) {
  const Rare intervals = rare_of(plan);
  std::size_t rare = scan_normal(data, n, intervals, scratch);
  const bool only_normal_or_zero =
      scratch.seen.largest < 0x7F800000u && scratch.seen.smallest_less_one >= 0x007FFFFFu;
  if (!only_normal_or_zero) {  // rare in real tensors: look at the block again, with care
    rare = gather_anything(data, n, intervals, scratch);
  }
  scratch.gathered_count = rare;
  for (std::size_t i = 0; i < rare; ++i) {  // to be counted one by one
    --scratch.coarse[scratch.gathered[i] >> (23 - kCoarseBits)];
  }
}

void make_keys(std::uint32_t* gathered, std::size_t n, const Plan& plan) {
  const Words d;
  const Vector one = hn::Set(d, 1u);
  for (std::size_t i = 0; i < n; i += hn::Lanes(d)) {
    const Vector bits = hn::LoadU(d, gathered + i);
    const Vector value = with_row(magnitude_of(bits));
    const Vector fraction = fraction_of(value);
    const Vector sign = hn::ShiftRight<31>(bits);
    Vector segment = hn::Zero(d);
    for (std::size_t k = 0; k < plan.cut_count; ++k) {
      const auto below = hn::Lt(fraction, hn::Set(d, plan.cuts[k]));
      segment = hn::IfThenElse(below, segment, hn::Add(segment, one));
    }
    static_assert(kMaxSegments == 16 && kRows == 512);
    const Vector row = hn::Or(hn::ShiftRight<23>(value), hn::ShiftLeft<9>(sign));
    hn::StoreU(hn::Or(hn::ShiftLeft<4>(row), segment), d, gathered + i);
  }
}

Seen see_finite(const std::uint8_t* data, std::size_t n) {
  const Words d;
  const std::size_t lanes = hn::Lanes(d);
  const Vector none = hn::Set(d, 0xFFFFFFFFu);
  SeenLanes seen = nothing_seen();
  for (std::size_t i = 0; i + lanes <= n; i += lanes) {
    const Vector value = with_row(magnitude_of(load(data + 4 * i)));
    const auto finite = is_finite_nonzero(value);
    seen.see(hn::IfThenElseZero(finite, value),
             hn::IfThenElse(finite, hn::Sub(value, hn::Set(d, 1u)), none),
             hn::IfThenElseZero(finite, fraction_of(value)));
  }
  return seen.total();
}

std::int32_t lowest_bit_row(const std::uint8_t* data, std::size_t n) {
  const Words d;
  const Integers di;
  const std::size_t lanes = hn::Lanes(d);
  auto lowest = hn::Set(di, kNoBit);
  for (std::size_t i = 0; i + lanes <= n; i += lanes) {
    const Vector value = with_row(magnitude_of(load(data + 4 * i)));
    const Vector significand = hn::Or(fraction_of(value), hn::Set(d, 0x00800000u));
    const Vector bit = hn::And(significand, hn::Sub(hn::Zero(d), significand));
    const Vector place = hn::ShiftRight<23>(float_of(bit));  // of the bit, plus 127
    const auto row =
        hn::BitCast(di, hn::Sub(hn::Add(hn::ShiftRight<23>(value), place), hn::Set(d, 23u + 127u)));
    const auto finite = hn::RebindMask(di, is_finite_nonzero(value));
    lowest = hn::Min(lowest, hn::IfThenElse(finite, row, hn::Set(di, kNoBit)));
  }
  return hn::GetLane(hn::MinOfLanes(di, lowest));
}

}  // namespace halfscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halfscope {

HWY_EXPORT(count_coarse);
HWY_EXPORT(make_keys);
HWY_EXPORT(see_finite);
HWY_EXPORT(lowest_bit_row);

namespace {

const std::uint8_t* octets(const std::byte* data) {
  return reinterpret_cast<const std::uint8_t*>(data);
}

}  // namespace

void count_coarse(const std::byte* data, std::size_t n, const Plan& plan, Scratch& scratch) {
  HWY_DYNAMIC_DISPATCH(count_coarse)(octets(data), n, plan, scratch);
}

void make_keys(std::uint32_t* gathered, std::size_t n, const Plan& plan) {
  HWY_DYNAMIC_DISPATCH(make_keys)(gathered, n, plan);
}

Seen see_finite(const std::byte* data, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(see_finite)(octets(data), n);
}

std::int32_t lowest_bit_row(const std::byte* data, std::size_t n) {
  return HWY_DYNAMIC_DISPATCH(lowest_bit_row)(octets(data), n);
}

}  // namespace halfscope
#endif
