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
inline constexpr unsigned kRows = kSpecialRow + 1;  ///< rows of finite numbers and specials

HALFSCOPE_HD constexpr int exponent_of_row(unsigned row) {
  return static_cast<int>(row) - (row < kFirstField ? 149 : 150);
}

// Segments of a binade, between the standard cuts. They depend on the first 11 bits of binary32's
// fraction, and on whether a lower bit is set.
inline constexpr unsigned kSegments = 9;
inline constexpr unsigned kSegmentEntries = 4096;
HALFSCOPE_HD constexpr unsigned segment_entry(unsigned fraction) {
  return (fraction >> 11 & 0xFFE) | ((fraction & 0xFFF) != 0 ? 1 : 0);
}
/// The standard cuts as fractions of binary32: the least fraction at or above each.
struct CutFractions {
  unsigned at[kSegments - 1];

  /// Returns the segment of all fractions that have the entry.
  HALFSCOPE_HD constexpr unsigned segment_of_entry(unsigned entry) const {
    const unsigned fraction = (entry >> 1 << 12) + (entry & 1);
    unsigned segment = 0;
    for (const unsigned cut : at) segment += cut <= fraction ? 1 : 0;
    return segment;
  }
};
/// Throws std::logic_error if 11 bits do not suffice.
CutFractions cut_fractions();

/// A row of a slice's table.
struct RowCounts {
  unsigned segments[kSegments];
  unsigned negative;
};

/// The rows of all finite nonzero elements of a dtype.
struct RowRange {
  unsigned first, count;
};
RowRange rows_of(Dtype dtype);

/// The other parts of a slice's table; all zero initially.
struct Extras {
  unsigned zero, negative_zero, nan, infinity, negative_infinity;
  unsigned largest;            ///< finite magnitude, as binary32
  unsigned smallest_inverted;  ///< ~(smallest magnitude - 1), joined by maximum
  unsigned fractions;          ///< the or of the fractions, subnormals normalised
  unsigned lowest_inverted;    ///< ~(lowest bit's exponent + kLowestBias), if known
  unsigned parts_done;         ///< parts that blocks have added
};
inline constexpr int kLowestBias = 149;

/// Sums of a part or a slice.
struct PartSums {
  double sum, sum_squares;
};

/// A slice's table, as a kernel writes it to pinned memory. Of the slice's rows it writes those
/// from the first nonempty one to the last.
struct SliceResult {
  PartSums sums;
  Extras extras;
  unsigned first_row, row_count;
};

/// Adds a slice to its tensor's table. rows: those of the result.
void add_to_table(BinadeTable& table, const SliceResult& result, const RowCounts* rows);

}  // namespace halfscope::cuda
