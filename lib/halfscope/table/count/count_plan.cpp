// SPDX-License-Identifier: Apache-2.0
// Conversion of a table's cuts to the plan of the two kernels.
#include <algorithm>
#include <bit>
#include <stdexcept>

#include "halfscope/table/count/count_blocks.hpp"

namespace halfscope {
namespace {

constexpr std::uint32_t kFractions = std::uint32_t{1} << 23;  // number of binary32 fractions
constexpr std::uint32_t kFineLength = kFractions / kFineBins;
constexpr std::uint32_t kCoarseLength = kFractions / kCoarseBins;

/// The first binary32 fraction at or above a cut.
std::uint32_t first_fraction(std::uint64_t cut) {
  return static_cast<std::uint32_t>((cut - 1) >> (52 - 23)) + 1;
}

std::size_t segment_at(const Plan& plan, std::uint32_t fraction) {
  const auto end = plan.cuts.begin() + static_cast<std::ptrdiff_t>(plan.cut_count);
  return static_cast<std::size_t>(std::upper_bound(plan.cuts.begin(), end, fraction) -
                                  plan.cuts.begin());
}

/// bin_of(b) returns the interval of fractions in bin b.
template <typename BinOf>
FineBins make_fine_bins(const Plan& plan, BinOf bin_of) {
  FineBins bins;
  std::size_t reached = 0;
  bool any = false;
  for (std::uint32_t b = 0; b < kFineBins; ++b) {
    const FractionInterval bin = bin_of(b);
    const std::size_t segment = segment_at(plan, bin.first);
    const bool one_segment = segment == segment_at(plan, bin.first + bin.length - 1);
    bins.entry[b] = kGather;
    if (!one_segment) continue;
    if (any && segment != bins.segment[reached]) {
      if (reached == kMaxThresholds) continue;  // too many segments: gathered
      ++reached;
    }
    any = true;
    bins.segment[reached] = segment;
    bins.entry[b] = static_cast<std::uint8_t>((1u << reached) - 1);
  }
  bins.thresholds = reached;
  return bins;
}

/// Registers the rarer side of a bin with cuts inside, which is gathered.
void make_rare(Plan& plan, FractionInterval rare) {
  if (rare.first == 0 && rare.length == 1) return;  // always gathered
  if (rare.first + rare.length == kFractions) {
    plan.rare_top = rare.first;
  } else if (rare.length == 1 && plan.rare_single == 0) {
    plan.rare_single = rare.first;
  } else {
    throw std::logic_error("binade table: cuts that the coarse bins cannot serve");
  }
}

void make_coarse_bins(Plan& plan) {
  const auto cuts_end = plan.cuts.begin() + static_cast<std::ptrdiff_t>(plan.cut_count);
  for (std::uint32_t bin = 0; bin < kCoarseBins; ++bin) {
    const std::uint32_t start = bin * kCoarseLength;
    const std::uint32_t end = start + kCoarseLength;
    plan.coarse_segment[bin] = segment_at(plan, start);
    const auto first = std::upper_bound(plan.cuts.begin(), cuts_end, start);
    const auto last = std::lower_bound(first, cuts_end, end);
    if (first == last) continue;
    const std::uint32_t lowest = *first, highest = *(last - 1);
    if (highest - start <= end - lowest) {
      make_rare(plan, {start, highest - start});
      plan.coarse_segment[bin] = segment_at(plan, highest);
    } else {
      make_rare(plan, {lowest, end - lowest});
    }
  }
}

}  // namespace

Plan make_plan(const std::vector<std::uint64_t>& cuts) {
  if (cuts.empty() || cuts.size() >= kMaxSegments || first_fraction(cuts.front()) != 1) {
    throw std::logic_error("binade table: not 1 to 15 cuts, or none right above 0");
  }
  Plan plan;
  plan.cut_count = cuts.size();
  std::transform(cuts.begin(), cuts.end(), plan.cuts.begin(), first_fraction);
  plan.f32 = make_fine_bins(plan, [](std::uint32_t b) {
    return FractionInterval{b * kFineLength, kFineLength};
  });
  // bfloat16 has no bits beyond the bin.
  plan.bf16 = make_fine_bins(plan, [](std::uint32_t b) {
    return FractionInterval{b * kFineLength, 1};
  });
  // binary16's fraction is rounded to odd: an even bin is one fraction, an odd one all between.
  plan.f16 = make_fine_bins(plan, [](std::uint32_t b) {
    return b % 2 == 0 ? FractionInterval{b * kFineLength, 1}
                      : FractionInterval{(b - 1) * kFineLength + 1, 2 * kFineLength - 1};
  });
  make_coarse_bins(plan);
  return plan;
}

}  // namespace halfscope
