// SPDX-License-Identifier: Apache-2.0
// Results of the counting kernels for the host, in one layout for both kernels. Internal to table/.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "halfscope/number/format.hpp"
#include "halfscope/table/count/count_cuda.hpp"

namespace halfscope::cuda {

// Rows. binary32's exponent field f has row f + kFirstField; its subnormals are normalised into the
// rows below by their leading bit. So a row's exponent is the exponent of the magnitude's leading
// bit, except for the rows of zeros and of nonfinite values.
inline constexpr unsigned kFirstField = 23;
inline constexpr unsigned kZeroRow = kFirstField, kSpecialRow = kFirstField + 255;
inline constexpr unsigned kNanRow = kSpecialRow + 1;  ///< row of NaNs, if separate from infinities
inline constexpr unsigned kRows = kSpecialRow + 1;    ///< rows of finite numbers and specials

HALFSCOPE_HD constexpr int exponent_of_row(unsigned row) {
  return static_cast<int>(row) - (row < kFirstField ? 149 : 150);
}

// Segments depend on the first 11 bits of binary32's fraction, and on whether a lower bit is set.
inline constexpr unsigned kSegments = 9;
inline constexpr unsigned kSegmentEntries = 4096;
HALFSCOPE_HD constexpr unsigned segment_entry(unsigned fraction) {
  return (fraction >> 11 & 0xFFE) | ((fraction & 0xFFF) != 0 ? 1 : 0);
}
/// Returns the segment of every entry for the standard cuts. Throws std::logic_error if 11 bits do
/// not suffice.
std::array<std::uint8_t, kSegmentEntries> segment_table();

/// A row of a tensor's table.
struct RowCounts {
  unsigned long long segments[kSegments];
  unsigned long long negative;
};

/// The rows of all elements of a dtype.
struct RowRange {
  unsigned first, count;
};
RowRange rows_of(Dtype dtype);

/// The other parts of a tensor's table; all zero initially.
struct Extras {
  unsigned long long zero, negative_zero, nan, infinity, negative_infinity;
  unsigned largest;            ///< finite magnitude, as binary32
  unsigned smallest_inverted;  ///< ~(smallest magnitude - 1), joined by maximum
  unsigned fractions;          ///< the or of the fractions, subnormals normalised
  unsigned lowest_inverted;    ///< ~(lowest bit's exponent + kLowestBias), if known
};
inline constexpr int kLowestBias = 149;

/// Sums of a part.
struct PartSums {
  double sum, sum_squares;
};

/// Builds a tensor's table from its rows, beginning with the first of its dtype, and its extras.
BinadeTable table_of(Dtype dtype, const RowCounts* rows, const Extras& extras);

}  // namespace halfscope::cuda
