// SPDX-License-Identifier: Apache-2.0
// What the halves of the vector pass share: the plan, a thread's counters, and what each processor
// does with one block. Internal to table/; count_blocks.cpp says how they work together.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope {

inline constexpr std::size_t kBlock = 2048;  ///< elements; a block and its masks stay in L1
inline constexpr std::size_t kStep = 64;     ///< elements at a time; blocks are multiples
inline constexpr std::size_t kMaxSegments = 16;

// Every element has a row by its binade: row r holds exponent r - kRowBias, binary32's subnormals
// normalised. A vector finds rows 1 to 277, infinities' and NaNs', and zeros', without a branch.
inline constexpr int kRowBias = 150;
inline constexpr std::uint32_t kSpecialRow = 278;  ///< segment 0: infinities; others: NaNs
inline constexpr std::uint32_t kZeroRow = 386;
inline constexpr std::size_t kRows = 512;
/// Normal magnitudes, as bits, plus this are (row, fraction of 23 bits).
inline constexpr std::uint32_t kToRow = 23u << 23;

// --- Plan: how fractions map to the segments of a table with some cuts.

/// 23-bit fractions in [first, first + length).
struct FractionInterval {
  std::uint32_t first = 0;
  std::uint32_t length = 0;
};

// The kernel for AVX-512 sees 7 bits of an element's fraction, its bin. Bit k of a bin's entry: the
// bin is at or above threshold k. kGather alone: only the whole fraction tells the segment.
inline constexpr std::size_t kFineBins = 128;
inline constexpr std::size_t kMaxThresholds = 4;
inline constexpr std::uint8_t kGather = 0x80;
struct FineBins {
  alignas(64) std::array<std::uint8_t, kFineBins> entry{};
  std::size_t thresholds = 0;
  std::array<std::size_t, kMaxThresholds + 1> segment{};  ///< by number of thresholds reached
};

// The kernel for all other processors counts every element by 4 bits of its fraction. Bins with a
// cut inside have rare fractions, which are gathered: 0, all from `rare_top` on, and one more.
inline constexpr int kCoarseBits = 4;
inline constexpr std::size_t kCoarseBins = std::size_t{1} << kCoarseBits;
/// By sign, exponent field and bin, with room: in both tables frequent counters would otherwise
/// have the same places in the cache.
inline constexpr std::size_t kCoarseRoom = 592;
using CoarseCounts =
    std::array<std::array<std::uint32_t, (1u << (9 + kCoarseBits)) + kCoarseRoom>, 2>;

struct Plan {
  std::array<std::uint32_t, kMaxSegments> cuts{};  ///< first fraction at or above each
  std::size_t cut_count = 0;
  FineBins f32, f16, bf16;
  std::uint32_t rare_top = std::uint32_t{1} << 23, rare_single = 0;
  std::array<std::size_t, kCoarseBins> coarse_segment{};  ///< of a bin's other elements
};
/// Throws std::logic_error for cuts the kernels cannot serve. The first must be the least: every
/// fraction but 0.
Plan make_plan(const std::vector<std::uint64_t>& cuts);

// --- Hot binades: those frequent of late, counted in registers.

inline constexpr std::size_t kPairs = 128;    ///< of binades: exponent fields 2p and 2p + 1
inline constexpr std::size_t kMaxGroups = 4;  ///< of 4 pairs
// An entry's bits 0 and 1: the pair's place in its group; bits 2 to 5: one for each group.
inline constexpr std::uint8_t kZeroPair = 0x40, kColdPair = 0x80;
struct HotBinades {
  alignas(64) std::array<std::uint8_t, kPairs> entry{};
  std::size_t groups = 1;
  std::array<std::uint8_t, 4 * kMaxGroups> pairs{};  ///< by group, then place
};

// --- What a thread counts. All counts are left zero between uses.

/// Of 64 elements, one bit each (all in the same order): what the hot kernel asks of them.
struct alignas(64) MaskRow {
  std::uint64_t pair_bit_0, pair_bit_1, group[kMaxGroups], zero, negative;
  std::uint64_t reached[kMaxThresholds], unused[3], field_bit_0;
};
static_assert(sizeof(MaskRow) == 128);

/// Of the magnitudes of a block, as binary32 bits; fractions: or-ed.
struct Seen {
  std::uint32_t largest = 0;
  std::uint32_t smallest_less_one = 0xFFFFFFFFu;
  std::uint32_t fractions = 0;
};

struct Scratch {
  /// Counts of all, of the negative, and of those at each threshold, by lane: the field's lowest
  /// bit, then the pair's place.
  static constexpr std::size_t kCounters = 2 + kMaxThresholds;
  alignas(64) std::array<std::array<std::array<std::uint64_t, 8>, kCounters>, kMaxGroups> hot{};
  std::uint64_t zeros = 0, negative_zeros = 0;                   ///< beside those in zero's row
  std::array<std::uint32_t, 2 * kRows * kMaxSegments> single{};  ///< by sign, row, segment
  CoarseCounts coarse{};  ///< of elements at even and at odd places

  // One block's. Room for one vector more, and the gather on a page of its own: it stores a whole
  // vector each time, and stores that straddle two pages halved the speed of the pass.
  alignas(4096) std::array<std::uint32_t, kBlock + 64> gathered{};
  alignas(4096) std::array<std::uint16_t, kBlock + 64> positions{};
  std::array<MaskRow, kBlock / kStep> masks{};
  std::array<std::uint8_t, kBlock / 8> marks{};  ///< a bit an element: gather it
  std::array<std::uint32_t, kBlock> wide{};      ///< 16-bit elements as binary32
  std::size_t gathered_count = 0;
  Seen seen;
};

// --- One block of n elements, a multiple of kStep and at most kBlock. count_simd.cpp.

/// Counts binary32 elements into scratch.coarse, and gathers what the plan calls rare and what is
/// not normal (zeros excepted). with_fractions: sees also those.
void count_coarse(const std::byte* data, std::size_t n, bool with_fractions, const Plan& plan,
                  Scratch& scratch);

/// Turns n gathered elements into indices of Scratch::single.
void make_keys(std::uint32_t* gathered, std::size_t n, const Plan& plan);

/// Of the finite nonzero ones of n binary32 elements, but with (row, fraction) for their bits.
/// largest is 0 where there is none.
Seen see_finite(const std::byte* data, std::size_t n);

/// The row in which the lowest set bit of any of them lies; kNoBit where there is none.
inline constexpr std::int32_t kNoBit = 1 << 20;
std::int32_t lowest_bit_row(const std::byte* data, std::size_t n);

// --- The kernel for AVX-512 with GFNI (Ice Lake, Zen 4 and later). count_hot.cpp.

/// Whether this processor has it, and nobody turned it off in Highway.
bool has_hot_kernel();

/// Finds the masks of a block, gathers what is not hot or not to be told by its bin, and sees the
/// magnitudes. with_fractions: also those. Fetches what follows the block in memory meanwhile;
/// where nothing does, nothing is read.
void find_masks(const TensorView& block, const FineBins& bins, const HotBinades& hot,
                bool with_fractions, Scratch& scratch);

/// Counts the masks of n elements, and fetches `next` meanwhile.
void count_masks(std::size_t n, std::size_t groups, std::size_t thresholds, const std::byte* next,
                 std::size_t next_bytes, Scratch& scratch);

/// Adds up how often each pair occurs.
void count_pairs(const TensorView& block, std::array<std::uint32_t, kPairs>& counts);

/// 16-bit elements as binary32.
void widen(const TensorView& block, std::uint32_t* wide);

}  // namespace halfscope
