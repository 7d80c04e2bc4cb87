// SPDX-License-Identifier: Apache-2.0
// What counting kernels leave for the host: one layout for both. Internal to table/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "halfscope/number/format.hpp"
#include "halfscope/table/count/count_cuda.hpp"

namespace halfscope::cuda {

// Rows. binary32's exponent field f is row f + kFirstField; its subnormals are normalised into the
// rows below by their leading bit. So a row's exponent is that of the magnitude's leading bit, but
// for those of zeros and of what is not finite.
inline constexpr unsigned kFirstField = 23;
inline constexpr unsigned kZeroRow = kFirstField, kSpecialRow = kFirstField + 255;
inline constexpr unsigned kNanRow = kSpecialRow + 1;  ///< where infinities are told from NaNs
inline constexpr unsigned kRows = kSpecialRow + 1;    ///< of finite numbers and specials

HALFSCOPE_HD constexpr int exponent_of_row(unsigned row) {
  return static_cast<int>(row) - (row < kFirstField ? 149 : 150);
}

// Segments: by the first 11 bits of binary32's fraction, and whether a lower one is set.
inline constexpr unsigned kSegments = 9;
inline constexpr unsigned kSegmentEntries = 4096;
HALFSCOPE_HD constexpr unsigned segment_entry(unsigned fraction) {
  return (fraction >> 11 & 0xFFE) | ((fraction & 0xFFF) != 0 ? 1 : 0);
}
/// The segment of every entry for the standard cuts. Throws std::logic_error where 11 bits do not
/// tell.
std::array<std::uint8_t, kSegmentEntries> segment_table();

/// A row of a tensor's table.
struct RowCounts {
  unsigned long long segments[kSegments];
  unsigned long long negative;
};

/// The rows that elements of a dtype can fall into.
struct RowRange {
  unsigned first, count;
};
RowRange rows_of(Dtype dtype);

/// The rest of a tensor's table; all zero at first.
struct Extras {
  unsigned long long zero, negative_zero, nan, infinity, negative_infinity;
  unsigned largest;            ///< finite magnitude, as binary32
  unsigned smallest_inverted;  ///< ~(the smallest one - 1), so that a larger one is the smaller
  unsigned fractions;          ///< the or of the fractions, subnormals normalised
  unsigned lowest_inverted;    ///< ~(exponent of the lowest bit + kLowestBias); where it is narrow
};
inline constexpr int kLowestBias = 149;

/// Sums of a part.
struct PartSums {
  double sum, sum_squares;
};

/// The table that a tensor's rows, from the first of its dtype's, and extras are.
BinadeTable table_of(Dtype dtype, const RowCounts* rows, const Extras& extras);

}  // namespace halfscope::cuda
