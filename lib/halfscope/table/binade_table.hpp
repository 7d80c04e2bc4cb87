// SPDX-License-Identifier: Apache-2.0
// The binade table: one pass over a tensor, 64-bit counts, every power-of-two scale exactly.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "halfscope/table/boundary.hpp"
#include "halfscope/table/count_list.hpp"
#include "halfscope/table/cuts.hpp"
#include "halfscope/table/interval.hpp"
#include "halfscope/table/rare.hpp"

namespace halfscope {

/// Counts that have no magnitude. `negative_zero` is part of `zero`.
struct SpecialCounts {
  std::uint64_t zero = 0;
  std::uint64_t negative_zero = 0;
  std::uint64_t nan = 0;
  std::uint64_t positive_infinity = 0;
  std::uint64_t negative_infinity = 0;

  friend bool operator==(const SpecialCounts&, const SpecialCounts&) = default;
};

struct Classes;

/// Up to this precision a table remembers its values' lowest bit: binary16's.
inline constexpr int kNarrowBits = kBinary16.precision;

/// Counts of a tensor's values by binade, each binade divided at the cuts.
///
/// Row e holds the finite nonzero values with magnitude in [2^e, 2^(e+1)); source subnormals are
/// normalised into their own rows. Segment i of a row holds the fractions in [cut(i), cut(i+1)),
/// with cut(0) = 0. Scaling by 2^k moves rows and nothing else, so a boundary whose fraction is a
/// cut is counted exactly at every k; any other boundary gives an interval. Tables add: in any
/// order and any split the result is the same to the last bit. Source of the idea:
/// docs/numerics/counting.md. Layout on disk: docs/run-log.md.
class BinadeTable {
 public:
  BinadeTable() = default;  ///< with the standard cuts
  /// Throws std::invalid_argument as Cuts does.
  explicit BinadeTable(std::vector<std::uint64_t> cuts) : cuts_(std::move(cuts)) {}

  /// Adds `times` finite nonzero values of one magnitude.
  void add(Magnitude magnitude, bool negative, std::uint64_t times = 1);
  void add_specials(const SpecialCounts& counts);

  /// Adds another table. Where the cuts differ, only the common ones are kept.
  void merge(const BinadeTable& other);

  /// The table of the same values times 2^k. Exponents are not limited: nothing over- or
  /// underflows.
  BinadeTable scaled_by_power_of_two(int k) const;

  const SpecialCounts& specials() const { return *specials_; }
  std::uint64_t infinities() const {
    return specials().positive_infinity + specials().negative_infinity;
  }
  std::uint64_t finite_nonzero() const;
  std::uint64_t total() const;

  /// Finite values with magnitude at or above m.
  Interval at_or_above(Magnitude m) const;

  struct Row {
    int exponent;
    CountSpan segments;      ///< one count a segment: cuts().size() + 1
    std::uint64_t negative;  ///< how many of the row's values are negative
    std::uint64_t count() const { return segments.sum(); }
  };
  /// Occupied rows only, ascending.
  std::vector<Row> rows() const;
  /// The least and the largest magnitude that a segment of a row may hold.
  std::pair<Magnitude, Magnitude> ends_of(const Row& row, std::size_t segment) const {
    return {{row.exponent, cuts_.first_of(segment)}, {row.exponent, cuts_.last_of(segment)}};
  }

  const std::vector<std::uint64_t>& cuts() const { return cuts_.list(); }

  /// Largest and smallest finite nonzero magnitude; empty when there is none.
  std::optional<Magnitude> largest() const { return largest_; }
  std::optional<Magnitude> smallest() const { return smallest_; }

  /// Bits of the longest significand without trailing zeros; 0 when empty.
  int significant_bits() const { return significant_bits_; }
  /// Exponent of the lowest bit set in any value. Kept only while significant_bits() is at most
  /// kNarrowBits: with wider values no format asks for it.
  std::optional<int> lowest_bit() const { return lowest_bit_; }

  /// True when one power of two times all finite values gives values of format f (its subnormals
  /// included), and at least one value exists. f.precision is at most kNarrowBits.
  bool fits(Format f) const;
  /// The same without the power of two: all values are values of f as they are.
  bool fits_as_is(Format f) const;

  /// The layout on disk, version 1: docs/run-log.md. Only occupied rows are written.
  std::vector<std::int64_t> encode() const;
  /// Throws std::invalid_argument naming what was found and wanted.
  static BinadeTable decode(std::span<const std::int64_t> words);

  /// Equal in every count, cut and extreme.
  friend bool operator==(const BinadeTable& a, const BinadeTable& b);

 private:
  friend class TableFiller;
  friend Classes classify(const BinadeTable& table, const Boundaries& limits);
  std::size_t stride() const { return cuts().size() + 2; }             // segments, then negative
  std::size_t row_count() const { return counts_.size() / stride(); }  // with empty ones
  Row row(std::size_t index) const;
  Interval at_or_above(const Row& row, std::uint64_t fraction) const;
  bool none_reaches(Magnitude m) const { return !largest_ || *largest_ < m; }
  bool all_reach(Magnitude m) const { return smallest_ && *smallest_ >= m; }
  std::size_t row_at(int exponent);  // where it begins in counts_; makes room for it
  void keep_only(const std::vector<std::uint64_t>& wanted);
  void widen(int significant_bits, std::optional<int> lowest_bit);

  Cuts cuts_;
  Rare<SpecialCounts> specials_;
  int first_exponent_ = 0;
  CountList counts_;  // shape (rows, stride())
  std::optional<Magnitude> largest_, smallest_;
  int significant_bits_ = 0;
  std::optional<int> lowest_bit_;
};

/// Finite nonzero values by what rounding to a format makes of them.
struct Classes {
  Interval flushed_to_zero, subnormal, normal, overflow;

  Classes& operator+=(const Classes& other);
  friend bool operator==(const Classes&, const Classes&) = default;
};

/// What rounding to a format with these boundaries would make of the table's values.
Classes classify(const BinadeTable& table, const Boundaries& limits);

}  // namespace halfscope
