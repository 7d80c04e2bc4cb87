// SPDX-License-Identifier: Apache-2.0
// Parts of the pass for every processor, with run-time dispatch to the widest vectors; and the pass
// over binary32 blocks on processors without the kernel of count_hot.cpp.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halfscope/table/count/count_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <hwy/cache_control.h>

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

/// Unsigned subtraction wraps, so one comparison tests both ends of [first, first + length).
HWY_INLINE hn::Mask<Words> within(Vector x, Vector first, Vector length) {
  return hn::Lt(hn::Sub(x, first), length);
}

HWY_INLINE hn::Mask<Words> is_normal(Vector magnitude) {
  const Words d;
  return within(magnitude, hn::Set(d, 0x00800000u), hn::Set(d, 0x7F800000u - 0x00800000u));
}

HWY_INLINE Vector magnitude_of(Vector bits) { return hn::And(bits, hn::Set(Words(), 0x7FFFFFFFu)); }

HWY_INLINE Vector fraction_of(Vector bits) { return hn::And(bits, hn::Set(Words(), 0x007FFFFFu)); }

/// Returns the bits of integers below 2^24 converted to floats; exact.
HWY_INLINE Vector float_of(Vector integer) {
  return hn::BitCast(Words(), hn::ConvertTo(Floats(), hn::BitCast(Integers(), integer)));
}

/// Returns a magnitude's row and its 23-bit fraction. A subnormal is an integer times 2^-149:
/// converted to float, it has the subnormal's fraction, and its row plus 126. Zero becomes
/// kZeroRow.
HWY_INLINE Vector with_row(Vector magnitude) {
  const Words d;
  const Vector normal = hn::Add(magnitude, hn::Set(d, kToRow));
  const Vector subnormal = hn::Sub(float_of(fraction_of(magnitude)), hn::Set(d, 126u << 23));
  return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x00800000u)), subnormal, normal);
}

HWY_INLINE hn::Mask<Words> is_finite_nonzero(Vector row_and_fraction) {
  return hn::Lt(row_and_fraction, hn::Set(Words(), kSpecialRow << 23));
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

constexpr std::size_t kLine = 16;  // elements: 64 bytes, a cache line

/// Returns the fraction minus one, so that fraction 0 becomes the highest. Zeros, which are all
/// ones in less_one, keep the sign bit.
HWY_INLINE Vector fraction_less_one(Vector less_one) {
  return hn::And(less_one, hn::Set(Words(), 0x807FFFFFu));
}

/// Tests for the rare fractions of a plan. As signed numbers, zeros are below all of them.
class Rare {
 public:
  HWY_INLINE explicit Rare(const Plan& plan)
      : below_top_(hn::Set(Integers(), static_cast<std::int32_t>(plan.rare_top) - 2)),
        single_(hn::Set(Words(), plan.rare_single - 1)) {}
  HWY_INLINE hn::Mask<Words> operator()(Vector less_one) const {
    const Vector fraction = fraction_less_one(less_one);
    const auto top = hn::Gt(hn::BitCast(Integers(), fraction), below_top_);
    return hn::Or(hn::RebindMask(Words(), top), hn::Eq(fraction, single_));
  }

 private:
  hn::Vec<Integers> below_top_;
  Vector single_;
};

/// Increments the counters of 64 bytes of elements. Neighbours use different tables, so that an
/// increment rarely waits for a previous one of the same counter.
HWY_INLINE void increment_line(const std::uint8_t* data, CoarseCounts& counts) {
  for (std::size_t k = 0; k < 4 * kLine; k += 8) {
    std::uint64_t two;
    std::memcpy(&two, data + k, sizeof two);
    ++counts[0][static_cast<std::uint32_t>(two) >> (23 - kCoarseBits)];
    ++counts[1][two >> (32 + 23 - kCoarseBits)];
  }
}

/// Stores mask_of() of each vector as one bit per element; calls per_line per kLine elements.
template <typename MaskOf, typename PerLine>
HWY_INLINE void mark(const std::uint8_t* data, std::size_t n, std::uint8_t* marks, MaskOf mask_of,
                     PerLine per_line) {
  const Words d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t step = std::max(kLine, lanes);
  for (std::size_t i = 0; i < n; i += step) {
    unsigned part = 0;  // part of a byte, for fewer than eight lanes
    for (std::size_t k = 0; k < step; k += lanes) {
      std::uint8_t* const to = marks + (i + k) / 8;
      hn::StoreMaskBits(d, mask_of(load(data + 4 * (i + k))), to);
      if (lanes >= 8) continue;
      part = (k % 8 == 0 ? 0 : part) | unsigned{*to} << k % 8;
      *to = static_cast<std::uint8_t>(part);
    }
    for (std::size_t k = 0; k < step; k += kLine) per_line(data + 4 * (i + k));
  }
}

/// Mixes vector and scalar work in one loop, so that the processor does both at the same time.
template <bool kFractions>
HWY_INLINE Seen scan_normal(const std::uint8_t* data, std::size_t n, const Plan& plan,
                            Scratch& scratch) {
  constexpr std::size_t kAhead = 2048;  // bytes; 10 % slower without prefetching
  const Words d;
  const Rare rare(plan);
  SeenLanes seen = nothing_seen();
  const auto see = [&](Vector bits) HWY_ATTR {
    const Vector magnitude = magnitude_of(bits);
    const Vector less_one = hn::Sub(magnitude, hn::Set(d, 1u));
    seen.see(magnitude, less_one, kFractions ? bits : seen.fractions);
    return rare(less_one);
  };
  const auto count = [&](const std::uint8_t* line) HWY_ATTR {
    hwy::Prefetch(line + kAhead);
    increment_line(line, scratch.coarse);
  };
  mark(data, n, scratch.marks.data(), see, count);
  Seen total = seen.total();
  total.fractions &= 0x007FFFFFu;
  return total;
}

/// Also marks elements that are neither normal nor zero.
HWY_INLINE void mark_anything(const std::uint8_t* data, std::size_t n, const Plan& plan,
                              Scratch& scratch) {
  const Words d;
  const Rare rare(plan);
  const auto wanted = [&](Vector bits) HWY_ATTR {
    const Vector magnitude = magnitude_of(bits);
    const auto zero = hn::Eq(magnitude, hn::Zero(d));
    return hn::Or(rare(hn::Sub(magnitude, hn::Set(d, 1u))),
                  hn::Not(hn::Or(is_normal(magnitude), zero)));
  };
  mark(data, n, scratch.marks.data(), wanted, [](const std::uint8_t*) HWY_ATTR {});
}

/// Stores the places of the marked elements; returns their number. 64 elements often have one mark
/// and rarely more, so the first is handled without a branch.
HWY_INLINE std::size_t places_of_marks(const std::uint8_t* marks, std::size_t n,
                                       std::uint16_t* places) {
  std::size_t count = 0;
  const auto put = [&](std::size_t i, std::uint64_t set) {
    places[count] = static_cast<std::uint16_t>(i + hwy::Num0BitsBelowLS1Bit_Nonzero64(set));
  };
  for (std::size_t i = 0; i < n; i += 64) {
    std::uint64_t set;
    std::memcpy(&set, marks + i / 8, sizeof set);
    put(i, set | std::uint64_t{1} << 63);
    count += set != 0 ? 1 : 0;
    for (set &= set - 1; HWY_UNLIKELY(set != 0); set &= set - 1) {
      put(i, set);
      ++count;
    }
  }
  return count;
}

void count_coarse(const std::uint8_t* data, std::size_t n, bool with_fractions, const Plan& plan,
                  Scratch& scratch) {
  scratch.seen = with_fractions ? scan_normal<true>(data, n, plan, scratch)
                                : scan_normal<false>(data, n, plan, scratch);
  const bool only_normal_or_zero =
      scratch.seen.largest < 0x7F800000u && scratch.seen.smallest_less_one >= 0x007FFFFFu;
  // Rare in real tensors: examine the block again, for all kinds of values.
  if (!only_normal_or_zero) mark_anything(data, n, plan, scratch);
  const std::uint16_t* const places = scratch.positions.data();
  scratch.gathered_count = places_of_marks(scratch.marks.data(), n, scratch.positions.data());
  for (std::size_t i = 0; i < scratch.gathered_count; ++i) {
    std::uint32_t bits;
    std::memcpy(&bits, data + 4 * std::size_t{places[i]}, sizeof bits);
    scratch.gathered[i] = bits;  // to be counted one by one
    --scratch.coarse[places[i] % 2][bits >> (23 - kCoarseBits)];
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
    const Vector place = hn::ShiftRight<23>(float_of(bit));  // exponent of the bit, plus 127
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

void count_coarse(const std::byte* data, std::size_t n, bool with_fractions, const Plan& plan,
                  Scratch& scratch) {
  HWY_DYNAMIC_DISPATCH(count_coarse)(octets(data), n, with_fractions, plan, scratch);
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
