// SPDX-License-Identifier: Apache-2.0
// Shared parts of the vector pass: the plan, a thread's counters, and the processor-specific
// functions for one block. Internal to table/; count_blocks.cpp describes how they work together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope {

inline constexpr std::size_t kBlock = 2048;  ///< elements; with masks, fits in the L1 cache
inline constexpr std::size_t kStep = 64;     ///< elements processed together; blocks are multiples
inline constexpr std::size_t kMaxSegments = 16;

// Every element has a row for its binade: row r has exponent r - kRowBias, with binary32's
// subnormals normalised. Vector code computes rows 1 to 277, the row of infinities and NaNs, and
// the row of zeros without a branch.
inline constexpr int kRowBias = 150;
inline constexpr std::uint32_t kSpecialRow = 278;  ///< segment 0: infinities; others: NaNs
inline constexpr std::uint32_t kZeroRow = 386;
inline constexpr std::size_t kRows = 512;
/// Bits of a normal magnitude plus this are (row, 23-bit fraction).
inline constexpr std::uint32_t kToRow = 23u << 23;

// --- Plan: maps fractions to the segments of a table with given cuts.

/// The 23-bit fractions in [first, first + length).
struct FractionInterval {
  std::uint32_t first = 0;
  std::uint32_t length = 0;
};

// The AVX-512 kernel uses 7 bits of an element's fraction, its bin. Bit k of a bin's entry: the bin
// is at or above threshold k. kGather: the segment depends on lower bits.
inline constexpr std::size_t kFineBins = 128;
inline constexpr std::size_t kMaxThresholds = 4;
inline constexpr std::uint8_t kGather = 0x80;
struct FineBins {
  alignas(64) std::array<std::uint8_t, kFineBins> entry{};
  std::size_t thresholds = 0;
  std::array<std::size_t, kMaxThresholds + 1> segment{};  ///< by thresholds reached
};

// The kernel for other processors counts every element by 4 bits of its fraction. Bins with a cut
// inside have rare fractions, which are gathered: 0, all from `rare_top` on, and one more.
inline constexpr int kCoarseBits = 4;
inline constexpr std::size_t kCoarseBins = std::size_t{1} << kCoarseBits;
/// Indexed by table, then by (sign, exponent field, bin). The padding keeps frequent counters of
/// the two tables out of the same cache sets.
inline constexpr std::size_t kCoarseRoom = 592;
using CoarseCounts =
    std::array<std::array<std::uint32_t, (1u << (9 + kCoarseBits)) + kCoarseRoom>, 2>;

struct Plan {
  std::array<std::uint32_t, kMaxSegments> cuts{};  ///< first fraction at or above each cut
  std::size_t cut_count = 0;
  FineBins f32, f16, bf16;
  std::uint32_t rare_top = std::uint32_t{1} << 23, rare_single = 0;
  std::array<std::size_t, kCoarseBins> coarse_segment{};  ///< segment of a bin's other elements
};
/// Throws std::logic_error for cuts that the kernels do not support. The first cut must be the
/// least possible, so that segment 0 has only the fraction 0.
Plan make_plan(const std::vector<std::uint64_t>& cuts);

// --- Hot binades: the recently frequent ones, counted in registers.

inline constexpr std::size_t kPairs = 128;    ///< pairs of binades: exponent fields 2p and 2p + 1
inline constexpr std::size_t kMaxGroups = 4;  ///< groups of 4 pairs
// Bits 0 and 1 of an entry: the pair's place in its group; bits 2 to 5: one for each group.
inline constexpr std::uint8_t kZeroPair = 0x40, kColdPair = 0x80;
struct HotBinades {
  alignas(64) std::array<std::uint8_t, kPairs> entry{};
  std::size_t groups = 1;
  std::array<std::uint8_t, 4 * kMaxGroups> pairs{};  ///< indexed by group, then place
};

// --- Counters of a thread. All are zero between uses.

/// Masks of 64 elements for the hot kernel, one bit per element, all in the same order.
struct alignas(64) MaskRow {
  std::uint64_t pair_bit_0, pair_bit_1, group[kMaxGroups], zero, negative;
  std::uint64_t reached[kMaxThresholds], unused[3], field_bit_0;
};
static_assert(sizeof(MaskRow) == 128);

/// Summary of a block's magnitudes, as binary32 bits; fractions: bitwise or.
struct Seen {
  std::uint32_t largest = 0;
  std::uint32_t smallest_less_one = 0xFFFFFFFFu;
  std::uint32_t fractions = 0;
};

struct Scratch {
  /// Counts of all elements, negative ones, and those at each threshold. The lanes are indexed by
  /// the field's lowest bit, then the pair's place.
  static constexpr std::size_t kCounters = 2 + kMaxThresholds;
  alignas(64) std::array<std::array<std::array<std::uint64_t, 8>, kCounters>, kMaxGroups> hot{};
  std::uint64_t zeros = 0, negative_zeros = 0;                   ///< not in the row of zeros
  std::array<std::uint32_t, 2 * kRows * kMaxSegments> single{};  ///< by sign, row, segment
  CoarseCounts coarse{};  ///< two tables, for elements at even and at odd places

  // Data of one block, with padding for one vector. The gather writes a whole vector each time; the
  // arrays are page-aligned because stores across two pages halved the speed.
  alignas(4096) std::array<std::uint32_t, kBlock + 64> gathered{};
  alignas(4096) std::array<std::uint16_t, kBlock + 64> positions{};
  std::array<MaskRow, kBlock / kStep> masks{};
  std::array<std::uint8_t, kBlock / 8> marks{};  ///< one bit per element: gather it
  std::array<std::uint32_t, kBlock> wide{};      ///< 16-bit elements as binary32
  std::size_t gathered_count = 0;
  Seen seen;
};

// --- Functions for a block of n elements, a multiple of kStep, at most kBlock. count_simd.cpp.

/// Counts binary32 elements into scratch.coarse; gathers the plan's rare fractions and all values
/// that are neither normal nor zero. Sets scratch.seen, its `fractions` only if with_fractions.
void count_coarse(const std::byte* data, std::size_t n, bool with_fractions, const Plan& plan,
                  Scratch& scratch);

/// Converts n gathered elements to indices of Scratch::single.
void make_keys(std::uint32_t* gathered, std::size_t n, const Plan& plan);

/// Returns the summary of the finite nonzero elements, as (row, fraction) instead of their bits.
/// largest is 0 if there are none.
Seen see_finite(const std::byte* data, std::size_t n);

/// Row of the lowest set bit of any element; kNoBit if there is none.
inline constexpr std::int32_t kNoBit = 1 << 20;
std::int32_t lowest_bit_row(const std::byte* data, std::size_t n);

// --- The kernel for AVX-512 with GFNI (Ice Lake, Zen 4 and later). count_hot.cpp.

/// Returns true if this processor supports the kernel and it is not disabled in Highway.
bool has_hot_kernel();

/// Computes the masks of a block, gathers elements that are not hot or whose bin does not determine
/// the segment, and sets scratch.seen, its `fractions` only if with_fractions. Prefetches memory
/// after the block, without access errors at the end of the tensor.
void find_masks(const TensorView& block, const FineBins& bins, const HotBinades& hot,
                bool with_fractions, Scratch& scratch);

/// Counts the masks of n elements, and prefetches `next`.
void count_masks(std::size_t n, std::size_t groups, std::size_t thresholds, const std::byte* next,
                 std::size_t next_bytes, Scratch& scratch);

/// Adds the number of occurrences of each pair to `counts`.
void count_pairs(const TensorView& block, std::array<std::uint32_t, kPairs>& counts);

/// Converts 16-bit elements to binary32.
void widen(const TensorView& block, std::uint32_t* wide);

}  // namespace halfscope
