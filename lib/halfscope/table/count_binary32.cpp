// SPDX-License-Identifier: Apache-2.0
// binary32 data to a table. The top 16 bits of an element (sign, exponent, 7 bits of fraction)
// index a coarse table, which counts every binade in 128 bins. Only a bin with a cut inside needs
// more of the fraction: the elements on the rarer side of such cuts are counted one by one instead.
#include "halfscope/table/count_binary32.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <stdexcept>
#include <utility>

#include "halfscope/table/count.hpp"
#include "halfscope/table/filler.hpp"

namespace halfscope {
namespace {

constexpr int kTailBits = 23 - kBinBits;  // fraction bits below a coarse index
constexpr int kFractionShift = 52 - 23;   // binary32's fraction in a table's 52 bits
constexpr std::uint32_t kBinLength = std::uint32_t{1} << kTailBits;

std::size_t segment_at(const std::vector<std::uint64_t>& cuts, std::uint32_t fraction) {
  const std::uint64_t wide = std::uint64_t{fraction} << kFractionShift;
  return static_cast<std::size_t>(std::upper_bound(cuts.begin(), cuts.end(), wide) - cuts.begin());
}

/// The first binary32 fraction at or above a cut.
std::uint32_t first_fraction(std::uint64_t cut) {
  return static_cast<std::uint32_t>((cut - 1) >> kFractionShift) + 1;
}

Plan make_plan(const std::vector<std::uint64_t>& cuts) {
  Plan plan;
  plan.cuts.fill(0xFFFFFFFFu);
  if (cuts.size() >= kMaxSegments) throw std::logic_error("binade table: more than 15 cuts");
  std::transform(cuts.begin(), cuts.end(), plan.cuts.begin(), first_fraction);
  std::size_t rare_bins = 0;
  for (std::uint32_t bin = 0; bin < kBins; ++bin) {
    const std::uint32_t start = bin << kTailBits;
    const std::uint32_t end = start + kBinLength;
    plan.segment[bin] = segment_at(cuts, start);
    std::vector<std::uint32_t> inside;  // first binary32 fraction at or above each cut
    for (const std::uint64_t cut : cuts) {
      const std::uint32_t first = first_fraction(cut);
      if (first > start && first < end) inside.push_back(first);
    }
    if (inside.empty()) continue;
    if (rare_bins == kMaxRare)
      throw std::logic_error("binade table: cuts in more bins than kMaxRare");
    const bool below_is_rarer = inside.back() - start <= end - inside.front();
    if (below_is_rarer) {
      plan.rare[rare_bins] = {start, inside.back() - start};
      plan.segment[bin] = segment_at(cuts, inside.back());
    } else {
      plan.rare[rare_bins] = {inside.front(), end - inside.front()};
    }
    ++rare_bins;
  }
  return plan;
}

Magnitude magnitude_of_bits(std::uint32_t magnitude_bits) {
  return magnitude_of(unpack(kBinary32, magnitude_bits));
}

/// Takes the gathered elements out of the coarse table and counts each where it belongs.
void count_rare(Scratch& scratch, const Plan& plan, BinadeTable& table) {
  for (std::size_t i = 0; i < scratch.rare_count; ++i) {
    const std::uint32_t bits = scratch.rare[i];
    const std::uint32_t fraction = bits & 0x007FFFFFu;
    const std::uint32_t field = (bits >> 23) & 0xFF;
    --scratch.coarse[bits >> (23 - kBinBits)];
    if (field == 0 || field == 255) {
      add_encoding(table, kBinary32, bits, 1);
      continue;
    }
    std::size_t segment = 0;  // no branches: the fractions are as good as random
    for (const std::uint32_t cut : plan.cuts) segment += fraction >= cut;
    ++scratch.single[bits >> 23][segment];
  }
}

template <typename T>
T take(T& count) {
  return std::exchange(count, 0);
}

/// Moves the counts of the binades seen into the table, and clears them.
void fold(Scratch& scratch, const Plan& plan, BinadeTable& table) {
  TableFiller filler(table);
  const std::uint32_t smallest = scratch.smallest_less_one + 1;
  const std::size_t last = scratch.largest >> 23;
  const std::size_t first = std::max<std::size_t>(1, smallest >> 23);
  for (const std::size_t sign : {0u, 1u}) {
    const std::size_t base = sign << 8;
    const std::uint64_t zeros = take(scratch.coarse[base << kBinBits]);
    table.add_specials({.zero = zeros, .negative_zero = sign != 0 ? zeros : 0});
    for (std::size_t field = first; field <= last; ++field) {
      const int exponent = static_cast<int>(field) - 127;
      const auto add = [&](std::size_t segment, std::uint32_t n) {
        if (n != 0) filler.add_segment(exponent, segment, sign != 0, n);
      };
      for (std::size_t bin = 0; bin < kBins; ++bin) {
        add(plan.segment[bin], take(scratch.coarse[(base | field) << kBinBits | bin]));
      }
      for (std::size_t i = 0; i < kMaxSegments; ++i) add(i, take(scratch.single[base | field][i]));
    }
  }
  if (last == 0) return;  // no normal element; subnormals were counted one by one
  filler.extend(magnitude_of_bits(smallest), magnitude_of_bits(scratch.largest));
}

/// Whole steps of at most 2^28 elements, which 32-bit counts surely hold.
void count_chunk(const std::byte* data, std::size_t n, const Plan& plan, Scratch& scratch,
                 BinadeTable& table) {
  scratch.reset();
  std::uint32_t low_bit = kBinary32.infinity();
  const auto significant_bits = [&] {
    return 24 - std::countr_zero(scratch.fractions | 0x00800000u);
  };
  for (std::size_t i = 0; i < n; i += kBlock) {
    const std::size_t count = std::min(kBlock, n - i);
    scan_block(data + 4 * i, count, plan, scratch);
    count_rare(scratch, plan, table);
    if (significant_bits() <= kNarrowBits) {  // else nobody will ask for the lowest bit
      low_bit = std::min(low_bit, smallest_low_bit(data + 4 * i, count));
    }
  }
  TableFiller filler(table);
  if (low_bit != kBinary32.infinity()) {
    filler.widen(significant_bits(), magnitude_of_bits(low_bit).exponent);
  } else if (scratch.fractions != 0) {
    filler.widen(significant_bits(), std::nullopt);
  }
  fold(scratch, plan, table);
}

}  // namespace

BinadeTable count_binary32(const std::byte* data, std::size_t n) {
  static const Plan plan = make_plan(standard_cuts());
  thread_local const auto scratch = std::make_unique<Scratch>();
  constexpr std::size_t kChunk = std::size_t{1} << 28;
  BinadeTable table;
  const std::size_t whole = n - n % kStep;
  for (std::size_t start = 0; start < whole; start += kChunk) {
    count_chunk(data + 4 * start, std::min(kChunk, whole - start), plan, *scratch, table);
  }
  table.merge(count_binades_scalar({Dtype::f32, data + 4 * whole, n - whole}, standard_cuts()));
  return table;
}

}  // namespace halfscope
