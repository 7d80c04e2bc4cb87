// SPDX-License-Identifier: Apache-2.0
// Adds sub-totals of the counting passes to a table. Internal to table/.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "halfscope/number/convert.hpp"
#include "halfscope/table/binade_table.hpp"
#include "halfscope/table/count/count.hpp"

namespace halfscope {

class MomentSums;

/// Returns the magnitude of a finite nonzero unpacked value.
inline Magnitude magnitude_of(const Unpacked& x) {
  const int lead = static_cast<int>(std::bit_width(x.significand)) - 1;
  return {x.exponent + lead, (x.significand << (52 - lead)) - kFractionUnit};
}

/// Adds `times` values of one encoding of any kind, including zeros, infinities and NaNs.
inline void add_encoding(BinadeTable& table, Format f, std::uint64_t bits, std::uint64_t times) {
  const Unpacked x = unpack(f, bits);
  SpecialCounts s;
  switch (x.kind) {
    case Kind::finite: table.add(magnitude_of(x), x.negative, times); return;
    case Kind::zero:
      s.zero = times;
      s.negative_zero = x.negative ? times : 0;
      break;
    case Kind::infinity: (x.negative ? s.negative_infinity : s.positive_infinity) = times; break;
    case Kind::nan: s.nan = times; break;
  }
  table.add_specials(s);
}

/// Adds whole segments to a table; the caller must also set the extremes with extend() and widen().
class TableFiller {
 public:
  explicit TableFiller(BinadeTable& table) : table_(table) {}

  void add_segment(int exponent, std::size_t segment, std::uint64_t times) {
    if (times != 0) table_.counts_.add(table_.row_at(exponent) + segment, times);
  }
  /// Adds `times` to the row's number of negative values; add_segment() adds the values themselves.
  void add_negative(int exponent, std::uint64_t times) {
    if (times != 0) add_segment(exponent, table_.stride() - 1, times);
  }
  void add_specials(const SpecialCounts& counts) { table_.add_specials(counts); }
  void extend(Magnitude smallest, Magnitude largest) {
    table_.smallest_ = table_.smallest_ ? std::min(*table_.smallest_, smallest) : smallest;
    table_.largest_ = table_.largest_ ? std::max(*table_.largest_, largest) : largest;
  }
  void widen(int significant_bits, std::optional<int> lowest_bit) {
    table_.widen(significant_bits, lowest_bit);
  }

 private:
  BinadeTable& table_;
};

/// Counts elements with the standard cuts; the dtype must be one for which counts_by_blocks() is
/// true on this processor. count_blocks.cpp. chunk: number of elements that fit 32-bit counters, a
/// multiple of 64. moments: receives the elements' moments in the same pass; null: not computed.
bool counts_by_blocks(Dtype dtype);
BinadeTable count_by_blocks(const TensorView& tensor, MomentSums* moments = nullptr,
                            std::size_t chunk = std::size_t{1} << 28);

}  // namespace halfscope
