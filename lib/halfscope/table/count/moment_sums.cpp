// SPDX-License-Identifier: Apache-2.0
// Sums in eight lanes per block: element i is added to lane i modulo 8, for any vector length.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halfscope/table/count/moment_sums.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "halfscope/number/convert.hpp"
#include "halfscope/table/count/element.hpp"
#include "halfscope/table/count/moment_sums.hpp"

HWY_BEFORE_NAMESPACE();
namespace halfscope::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Doubles = hn::CappedTag<double, BlockSums::kLanes>;
using Floats = hn::Rebind<float, Doubles>;

HWY_INLINE hn::Vec<Doubles> doubles_at(const float* data) {
  return hn::PromoteTo(Doubles(), hn::LoadU(Floats(), data));
}

/// Adds a multiple of eight binary32 elements. With kSkip, infinite and NaN elements count as 0.
template <bool kSkip>
HWY_INLINE void add_eights(const float* data, std::size_t n, BlockSums& block) {
  const Doubles d;
  constexpr std::size_t kParts = BlockSums::kLanes / hn::MaxLanes(d);
  hn::Vec<Doubles> sums[kParts], squares[kParts];
  for (std::size_t k = 0; k < kParts; ++k) sums[k] = squares[k] = hn::Zero(d);
  for (std::size_t i = 0; i < n; i += BlockSums::kLanes) {
    for (std::size_t k = 0; k < kParts; ++k) {
      auto x = doubles_at(data + i + k * hn::MaxLanes(d));
      if constexpr (kSkip) x = hn::IfThenElseZero(hn::IsFinite(x), x);
      sums[k] = hn::Add(sums[k], x);
      squares[k] = hn::Add(squares[k], hn::Mul(x, x));
    }
  }
  for (std::size_t k = 0; k < kParts; ++k) {
    hn::StoreU(sums[k], d, block.sums.data() + k * hn::MaxLanes(d));
    hn::StoreU(squares[k], d, block.squares.data() + k * hn::MaxLanes(d));
  }
}

void add_all_eights(const float* data, std::size_t n, BlockSums& block) {
  add_eights<false>(data, n, block);
}
void add_finite_eights(const float* data, std::size_t n, BlockSums& block) {
  add_eights<true>(data, n, block);
}

/// Exact. If there is no instruction for it, Highway converts infinities and NaN to finite numbers,
/// so this function handles them.
HWY_INLINE hn::Vec<Floats> floats_of_halves(const std::uint16_t* data) {
  const Floats d;
  using Halves = hn::Rebind<hwy::float16_t, Floats>;
  const hn::Rebind<std::uint32_t, Floats> words;
  const hn::Rebind<std::uint16_t, Floats> halves;
  const auto finite =
      hn::PromoteTo(d, hn::LoadU(Halves(), reinterpret_cast<const hwy::float16_t*>(data)));
  const auto bits = hn::PromoteTo(words, hn::LoadU(halves, data));
  const auto top = hn::Set(words, 0x7C00);
  const auto not_finite = hn::Or(
      hn::ShiftLeft<16>(hn::And(bits, hn::Set(words, 0x8000))),
      hn::Or(hn::Set(words, 0x7F800000), hn::ShiftLeft<13>(hn::And(bits, hn::Set(words, 0x3FF)))));
  const auto is_top = hn::RebindMask(d, hn::Eq(hn::And(bits, top), top));
  return hn::IfThenElse(is_top, hn::BitCast(d, not_finite), finite);
}

/// Converts binary16 and bfloat16 to binary32, exactly. NaN stays NaN.
void widen_to_floats(Dtype dtype, const std::byte* data, std::size_t n, float* wide) {
  const Floats d;
  using Brains = hn::Rebind<hwy::bfloat16_t, Floats>;
  constexpr std::size_t kStep = hn::MaxLanes(d);
  alignas(64) std::array<std::uint16_t, BlockSums::kLanes> part{};
  for (std::size_t i = 0; i < n; i += kStep) {
    const std::size_t count = std::min(kStep, n - i);
    std::memcpy(part.data(), data + 2 * i, 2 * count);
    const auto to =
        dtype == Dtype::f16
            ? floats_of_halves(part.data())
            : hn::PromoteTo(
                  d, hn::LoadU(Brains(), reinterpret_cast<const hwy::bfloat16_t*>(part.data())));
    hn::StoreU(to, d, wide + i);
  }
}

}  // namespace halfscope::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halfscope {

HWY_EXPORT(add_all_eights);
HWY_EXPORT(add_finite_eights);
HWY_EXPORT(widen_to_floats);

namespace {

using Wide = std::array<float, MomentSums::kBlock + BlockSums::kLanes>;

/// Returns a block's elements as binary32: in place if they are aligned binary32, else in `wide`.
const float* as_floats(const TensorView& block, Wide& wide) {
  if (block.dtype != Dtype::f32) {
    HWY_DYNAMIC_DISPATCH(widen_to_floats)(block.dtype, block.data, block.count, wide.data());
    return wide.data();
  }
  if (reinterpret_cast<std::uintptr_t>(block.data) % alignof(float) == 0) {
    return reinterpret_cast<const float*>(block.data);
  }
  std::memcpy(wide.data(), block.data, block.bytes());
  return wide.data();
}

void add_one(double x, std::size_t lane, BlockSums& block) {
  if (!std::isfinite(x)) return;
  ++block.finite;
  block.sums[lane] += x;
  block.squares[lane] += x * x;
}

BlockSums sums_of_floats(const float* data, std::size_t n) {
  BlockSums block;
  const std::size_t whole = n - n % BlockSums::kLanes;
  HWY_DYNAMIC_DISPATCH(add_all_eights)(data, whole, block);
  block.finite = whole;
  // The squares of a block's finite binary32 numbers sum to far less than binary64's maximum.
  const auto is_finite = [](double x) { return std::isfinite(x); };
  if (!std::all_of(block.squares.begin(), block.squares.end(), is_finite)) {
    HWY_DYNAMIC_DISPATCH(add_finite_eights)(data, whole, block);
    block.finite = static_cast<std::uint64_t>(std::count_if(data, data + whole, is_finite));
  }
  for (std::size_t i = whole; i < n; ++i) add_one(double{data[i]}, i - whole, block);
  return block;
}

BlockSums sums_one_by_one(const TensorView& block) {
  BlockSums sums;
  const Format f = format_of(block.dtype);
  for (std::size_t i = 0; i < block.count; ++i) {
    add_one(to_double(f, load(block, i)), i % BlockSums::kLanes, sums);
  }
  return sums;
}

}  // namespace

void MomentSums::add(const TensorView& part) {
  const auto width = static_cast<std::size_t>(format_of(part.dtype).width / 8);
  const bool narrow = width == 2 || part.dtype == Dtype::f32;
  alignas(64) thread_local Wide wide;
  for (std::size_t first = 0; first < part.count; first += kBlock) {
    const TensorView block{part.dtype, part.data + first * width,
                           std::min(kBlock, part.count - first)};
    const BlockSums sums =
        narrow ? sums_of_floats(as_floats(block, wide), block.count) : sums_one_by_one(block);
    for (std::size_t lane = 0; lane < BlockSums::kLanes; ++lane) {
      sum_ += sums.sums[lane];
      sum_squares_ += sums.squares[lane];
    }
    finite_ += sums.finite;
  }
}

Moments MomentSums::value() const {
  return {finite_ == 0 ? 0.0 : sum_ / static_cast<double>(finite_), sum_squares_};
}

Moments moments(const TensorView& tensor) {
  MomentSums sums;
  sums.add(tensor);
  return sums.value();
}

}  // namespace halfscope
#endif
