// SPDX-License-Identifier: Apache-2.0
// Counts binary32, binary16 and bfloat16 data into a table, block by block.
//
// With the kernel of count_hot.cpp, the binades that were frequent in earlier blocks are counted in
// registers; elements of other binades, and elements whose segment 7 bits of fraction do not
// determine, are gathered and counted one by one. The choice of binades affects only the speed. On
// other processors, binary32 elements index two coarse tables, 16 bins per binade, and only the
// rarer side of a bin with a cut inside is gathered.
#include "halfscope/table/count/count_blocks.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <utility>

#include "halfscope/table/count/filler.hpp"
#include "halfscope/table/count/moment_sums.hpp"

namespace halfscope {
namespace {

constexpr std::uint32_t kFraction = 0x007FFFFFu;
constexpr std::uint32_t kInfinityBits = 0x7F800000u;
constexpr std::uint32_t kSecondPair = 0x01000000u;  // the least magnitude outside the zeros' pair

template <typename T>
T take(T& count) {
  return std::exchange(count, 0);
}

/// Chooses the binades that are counted in registers, and decides when to choose again.
class HotChoice {
 public:
  HotChoice() { hot_.entry.fill(kColdPair); }

  /// Begins a tensor: keeps the last choice, but chooses again in the first block if it is
  /// unsuitable, otherwise soon.
  void begin() {
    set_tiny(false);
    seen_.fill(0);
    patience_ = kPatience;
    age_ = kOld - kSoon;
  }

  const HotBinades& binades() const { return hot_; }

  /// Tiny values share the pair of zeros; if there are any, zeros are counted one by one too.
  void set_tiny(bool tiny) { hot_.entry[0] = tiny ? kColdPair : kZeroPair; }
  bool tiny() const { return hot_.entry[0] == kColdPair; }

  /// Returns true if it is time to choose: much of the last block was cold, or the choice is old.
  bool due(std::size_t gathered, std::size_t n) {
    ++age_;
    return age_ >= kOld || (age_ >= patience_ && gathered > n / 8);
  }

  /// Chooses by the occurrences of each pair in a block, and by earlier ones at half weight.
  void choose(const std::array<std::uint32_t, kPairs>& counts) {
    for (std::size_t p = 0; p < kPairs; ++p) seen_[p] = seen_[p] / 2 + counts[p];
    seen_.front() = seen_.back() = 0;  // never hot: zeros; infinities and NaNs
    std::array<std::uint8_t, kPairs> order;
    std::iota(order.begin(), order.end(), std::uint8_t{0});
    std::partial_sort(order.begin(), order.begin() + hot_.pairs.size(), order.end(),
                      [&](std::uint8_t a, std::uint8_t b) {
                        return seen_[a] != seen_[b] ? seen_[a] > seen_[b] : a < b;
                      });
    const bool tiny_now = tiny();
    const HotBinades before = std::exchange(hot_, HotBinades{});
    hot_.entry.fill(kColdPair);
    std::copy_n(order.begin(), hot_.pairs.size(), hot_.pairs.begin());
    hot_.groups = groups_worth_it();
    for (std::size_t i = 0; i < 4 * hot_.groups; ++i) {
      if (seen_[hot_.pairs[i]] == 0) break;
      hot_.entry[hot_.pairs[i]] = static_cast<std::uint8_t>(i % 4 | std::size_t{4} << i / 4);
    }
    set_tiny(tiny_now);
    const bool changed = before.entry != hot_.entry;
    patience_ = changed ? kPatience : std::min(2 * patience_, kOld);
    age_ = 0;
  }

 private:
  static constexpr int kPatience = 8, kSoon = 16, kOld = 1024;  // blocks

  /// A group takes as long as counting a thirtieth of the elements one by one.
  std::size_t groups_worth_it() const {
    const auto all = std::accumulate(seen_.begin(), seen_.end(), std::uint64_t{0});
    std::size_t groups = 1;
    for (; groups < kMaxGroups; ++groups) {
      std::uint64_t more = 0;
      for (std::size_t i = 0; i < 4; ++i) {
        more += seen_[hot_.pairs[4 * groups + i]];
      }
      if (more * 30 < all) break;
    }
    return groups;
  }

  HotBinades hot_;
  std::array<std::uint32_t, kPairs> seen_{};
  int age_ = kOld, patience_ = kPatience;
};

/// Counts a chunk of a tensor into a table; the chunk must fit 32-bit counts.
class BlockCounter {
 public:
  BlockCounter(Dtype dtype, const Plan& plan, Scratch& scratch, HotChoice& choice,
               BinadeTable& table)
      : plan_(plan),
        scratch_(scratch),
        filler_(table),
        choice_(choice),
        with_hot_(has_hot_kernel()) {
    const bool narrow = dtype != Dtype::f32;
    bins_ = !narrow ? &plan.f32 : dtype == Dtype::f16 ? &plan.f16 : &plan.bf16;
    precision_ = format_of(dtype).precision;
    least_row_ = kRowBias + format_of(dtype).min_quantum_exponent();
    choice_.begin();
  }

  /// Counts a block; `next` are the elements after it.
  void add(const TensorView& block, const std::byte* next) {
    if (with_hot_) {
      add_hot(block, next);
    } else {
      count_coarse(block.data, block.count, significant_bits() < precision_, plan_, scratch_);
    }
    count_gathered();
    see(block);
  }

  void finish();

 private:
  bool has_tiny() const { return scratch_.seen.smallest_less_one < kSecondPair - 1; }

  void add_hot(const TensorView& block, const std::byte* next) {
    const bool with_fractions = significant_bits() < precision_;
    find_masks(block, *bins_, choice_.binades(), with_fractions, scratch_);
    const bool due = choice_.due(scratch_.gathered_count, block.count);
    const bool again = due || (has_tiny() && !choice_.tiny());
    if (due) choose(block);
    choice_.set_tiny(has_tiny());
    if (again) find_masks(block, *bins_, choice_.binades(), with_fractions, scratch_);
    count_masks(block.count, choice_.binades().groups, bins_->thresholds, next, block.bytes(),
                scratch_);
  }

  void choose(const TensorView& block) {
    fold_hot();
    std::array<std::uint32_t, kPairs> counts{};
    count_pairs(block, counts);
    choice_.choose(counts);
  }

  void count_gathered() {
    make_keys(scratch_.gathered.data(), scratch_.gathered_count, plan_);
    for (std::size_t i = 0; i < scratch_.gathered_count; ++i) {
      ++scratch_.single[scratch_.gathered[i]];
    }
  }

  int significant_bits() const {
    return any_ ? 24 - std::countr_zero(fractions_ | (kFraction + 1)) : 0;
  }

  void see(const TensorView& block);
  void fold_hot();
  void fold_single();
  void fold_coarse();
  static Magnitude magnitude(std::uint32_t row_and_fraction) {
    return {static_cast<int>(row_and_fraction >> 23) - kRowBias,
            std::uint64_t{row_and_fraction & kFraction} << (52 - 23)};
  }

  const Plan& plan_;
  Scratch& scratch_;
  TableFiller filler_;
  HotChoice& choice_;
  const FineBins* bins_;
  int precision_;
  std::int32_t least_row_;  // row of the format's least bit
  bool with_hot_;
  // Summary of the finite nonzero elements so far, as (row, fraction):
  bool any_ = false;
  std::uint32_t largest_ = 0, smallest_ = 0xFFFFFFFFu, fractions_ = 0;
  std::int32_t lowest_bit_ = kNoBit;
};

/// Returns the elements of a block as binary32: in place, or converted in scratch.
const std::byte* as_binary32(const TensorView& block, Scratch& scratch) {
  if (block.dtype == Dtype::f32) return block.data;
  widen(block, scratch.wide.data());
  return std::as_bytes(std::span(scratch.wide)).data();
}

void BlockCounter::see(const TensorView& block) {
  Seen seen = scratch_.seen;
  if (seen.smallest_less_one >= kInfinityBits - 1) return;  // no finite values except zeros
  const std::byte* wide = nullptr;
  if (seen.largest >= kInfinityBits || seen.smallest_less_one < kFraction) {
    wide = as_binary32(block, scratch_);
    seen = see_finite(wide, block.count);
    if (seen.largest == 0) return;
  } else {
    seen.largest += kToRow;
    seen.smallest_less_one += kToRow;
  }
  any_ = true;
  largest_ = std::max(largest_, seen.largest);
  smallest_ = std::min(smallest_, seen.smallest_less_one + 1);
  fractions_ |= seen.fractions;
  if (significant_bits() > kNarrowBits) return;  // the lowest bit is not used for wider values
  // A bit is at most a precision below a value's first bit, and not below its format's least.
  const auto smallest_row = static_cast<std::int32_t>((seen.smallest_less_one + 1) >> 23);
  const std::int32_t bound = smallest_row - (std::min(precision_, kNarrowBits) - 1);
  if (std::max(bound, least_row_) >= lowest_bit_) return;
  if (wide == nullptr) wide = as_binary32(block, scratch_);
  lowest_bit_ = std::min(lowest_bit_, lowest_bit_row(wide, block.count));
}

void BlockCounter::fold_hot() {
  const HotBinades& hot = choice_.binades();
  for (std::size_t g = 0; g < hot.groups; ++g) {
    for (std::size_t lane = 0; lane < 8; ++lane) {
      const auto counter = [&](std::size_t k) -> std::uint64_t& {
        return scratch_.hot[g][k][lane];
      };
      if (counter(0) == 0) continue;
      const int exponent = 2 * hot.pairs[4 * g + lane / 2] + static_cast<int>(lane % 2) - 127;
      filler_.add_negative(exponent, take(counter(1)));
      std::uint64_t reached = take(counter(0));
      for (std::size_t k = 0; k <= bins_->thresholds; ++k) {
        const std::uint64_t higher = k < bins_->thresholds ? take(counter(2 + k)) : 0;
        filler_.add_segment(exponent, bins_->segment[k], reached - higher);
        reached = higher;
      }
    }
  }
  const std::uint64_t negative = take(scratch_.negative_zeros);
  filler_.add_specials({.zero = take(scratch_.zeros), .negative_zero = negative});
}

void BlockCounter::fold_single() {
  const auto each = [&](std::size_t sign, std::size_t row, auto add) {
    std::uint32_t* const counts = &scratch_.single[(sign * kRows + row) * kMaxSegments];
    for (std::size_t i = 0; i < kMaxSegments; ++i) {
      if (counts[i] != 0) add(i, take(counts[i]));
    }
  };
  for (const std::size_t sign : {0u, 1u}) {
    each(sign, kZeroRow, [&](std::size_t, std::uint32_t n) {
      filler_.add_specials({.zero = n, .negative_zero = sign != 0 ? n : 0});
    });
    each(sign, kSpecialRow, [&](std::size_t segment, std::uint32_t n) {
      SpecialCounts s;
      (segment != 0 ? s.nan : sign != 0 ? s.negative_infinity : s.positive_infinity) = n;
      filler_.add_specials(s);
    });
    if (!any_) continue;
    for (std::size_t row = smallest_ >> 23; row <= largest_ >> 23; ++row) {
      const int exponent = static_cast<int>(row) - kRowBias;
      each(sign, row, [&](std::size_t segment, std::uint32_t n) {
        filler_.add_segment(exponent, segment, n);
        if (sign != 0) filler_.add_negative(exponent, n);
      });
    }
  }
}

void BlockCounter::fold_coarse() {
  constexpr std::uint32_t kToField = kToRow >> 23;
  for (const std::size_t sign : {0u, 1u}) {
    const auto take_both = [&](std::size_t field, std::size_t bin) {
      const std::size_t i = (sign << 8 | field) << kCoarseBits | bin;
      return take(scratch_.coarse[0][i]) + take(scratch_.coarse[1][i]);
    };
    const std::uint64_t zeros = take_both(0, 0);
    filler_.add_specials({.zero = zeros, .negative_zero = sign != 0 ? zeros : 0});
    if (!any_) continue;
    for (std::uint32_t row = std::max(smallest_ >> 23, kToField + 1); row <= largest_ >> 23;
         ++row) {
      const int exponent = static_cast<int>(row) - kRowBias;
      for (std::size_t bin = 0; bin < kCoarseBins; ++bin) {
        const std::uint32_t n = take_both(row - kToField, bin);
        filler_.add_segment(exponent, plan_.coarse_segment[bin], n);
        if (sign != 0) filler_.add_negative(exponent, n);
      }
    }
  }
}

void BlockCounter::finish() {
  fold_hot();
  fold_single();
  if (!with_hot_) fold_coarse();
  if (!any_) return;
  filler_.extend(magnitude(smallest_), magnitude(largest_));
  const bool narrow = significant_bits() <= kNarrowBits;
  filler_.widen(significant_bits(), narrow ? std::optional(lowest_bit_ - kRowBias) : std::nullopt);
}

}  // namespace

bool counts_by_blocks(Dtype dtype) {
  if (dtype == Dtype::f32) return true;
  return (dtype == Dtype::f16 || dtype == Dtype::bf16) && has_hot_kernel();
}

BinadeTable count_by_blocks(const TensorView& tensor, MomentSums* moments, std::size_t chunk) {
  // Elements whose moments are added together, while they are in the cache.
  constexpr std::size_t kSummed = 4 * MomentSums::kBlock;
  static const Plan plan = make_plan(standard_cuts());
  thread_local const auto scratch = std::make_unique<Scratch>();
  thread_local HotChoice choice;
  const std::size_t width = tensor.bytes() / std::max<std::size_t>(1, tensor.count);
  const auto part = [&](std::size_t first, std::size_t count) {
    return TensorView{tensor.dtype, tensor.data + width * first, count};
  };
  BinadeTable table;
  const std::size_t whole = tensor.count - tensor.count % kStep;
  std::size_t summed = 0;
  for (std::size_t start = 0; start < whole; start += chunk) {
    BlockCounter counter(tensor.dtype, plan, *scratch, choice, table);
    const std::size_t end = std::min(start + chunk, whole);
    for (std::size_t i = start; i < end; i += kBlock) {
      const std::size_t count = std::min(kBlock, end - i);
      counter.add(part(i, count), tensor.data + width * (i + count));
      if (moments == nullptr || i + count < summed + kSummed) continue;
      moments->add(part(summed, kSummed));
      summed += kSummed;
    }
    counter.finish();
  }
  if (moments != nullptr) moments->add(part(summed, tensor.count - summed));
  if (whole == tensor.count) return table;
  table.merge(count_binades_scalar(part(whole, tensor.count - whole), standard_cuts()));
  return table;
}

}  // namespace halfscope
