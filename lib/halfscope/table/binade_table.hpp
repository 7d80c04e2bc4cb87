// SPDX-License-Identifier: Apache-2.0
// A histogram by powers of two: one pass over a tensor, 64-bit counts, exact for such scales.
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

/// Counts of values without a magnitude. `negative_zero` is included in `zero`.
struct SpecialCounts {
  std::uint64_t zero = 0;
  std::uint64_t negative_zero = 0;
  std::uint64_t nan = 0;
  std::uint64_t positive_infinity = 0;
  std::uint64_t negative_infinity = 0;

  friend bool operator==(const SpecialCounts&, const SpecialCounts&) = default;
};

struct Classes;

/// Up to this precision, binary16's, a table stores the lowest bit of its values.
inline constexpr int kNarrowBits = kBinary16.precision;

/// Histogram of a tensor's values: a row per binade, each divided into segments at the cuts.
///
/// Row e has the finite nonzero values with magnitudes in [2^e, 2^(e+1)); subnormals of the source
/// format are normalised into their own rows. Segment i of a row has the fractions in [cut(i),
/// cut(i+1)), with cut(0) = 0. Scaling by 2^k only moves rows, so a boundary whose fraction is a
/// cut is counted exactly for every k; for any other boundary the count is an interval. Tables can
/// be added: the result has the same bits for any order and any division of the data. Source of the
/// idea: docs/numerics/counting.md. Layout on disk: docs/run-log.md.
class BinadeTable {
 public:
  BinadeTable() = default;  ///< with the standard cuts
  /// Throws std::invalid_argument as Cuts does.
  explicit BinadeTable(std::vector<std::uint64_t> cuts) : cuts_(std::move(cuts)) {}

  /// Adds `times` finite nonzero values of the same magnitude.
  void add(Magnitude magnitude, bool negative, std::uint64_t times = 1);
  void add_specials(const SpecialCounts& counts);

  /// Adds another table. If the cuts differ, only the common ones are kept.
  void merge(const BinadeTable& other);

  /// Returns the table of the values times 2^k. Exponents are unlimited: no over- or underflow.
  BinadeTable scaled_by_power_of_two(int k) const;

  const SpecialCounts& specials() const { return *specials_; }
  std::uint64_t infinities() const {
    return specials().positive_infinity + specials().negative_infinity;
  }
  std::uint64_t finite_nonzero() const;
  std::uint64_t total() const;

  /// Number of finite values with a magnitude of at least m.
  Interval at_or_above(Magnitude m) const;

  struct Row {
    int exponent;
    CountSpan segments;      ///< one count per segment: cuts().size() + 1
    std::uint64_t negative;  ///< number of negative values in the row
    std::uint64_t count() const { return segments.sum(); }
  };
  /// Returns the nonempty rows, ascending.
  std::vector<Row> rows() const;
  /// Smallest and largest magnitude that belong to a segment of a row.
  std::pair<Magnitude, Magnitude> ends_of(const Row& row, std::size_t segment) const {
    return {{row.exponent, cuts_.first_of(segment)}, {row.exponent, cuts_.last_of(segment)}};
  }

  const std::vector<std::uint64_t>& cuts() const { return cuts_.list(); }

  /// Largest and smallest finite nonzero magnitude; empty if there is no such value.
  std::optional<Magnitude> largest() const { return largest_; }
  std::optional<Magnitude> smallest() const { return smallest_; }

  /// Bits of the longest significand without trailing zeros; 0 if the table is empty.
  int significant_bits() const { return significant_bits_; }
  /// Exponent of the lowest bit set in any value. Only known while significant_bits() is at most
  /// kNarrowBits, since formats with more precision do not use it.
  std::optional<int> lowest_bit() const { return lowest_bit_; }

  /// Returns true if a power of two scales all finite values to values of f (including subnormals),
  /// and at least one value exists. f.precision must be at most kNarrowBits.
  bool fits(Format f) const;
  /// Returns true if all finite values are values of f without scaling.
  bool fits_as_is(Format f) const;

  /// Returns the layout on disk, version 1 (docs/run-log.md), with the nonempty rows.
  std::vector<std::int64_t> encode() const;
  /// Throws std::invalid_argument that names what was found and what was expected.
  static BinadeTable decode(std::span<const std::int64_t> words);

  /// Returns true if all counts, cuts and extremes are equal.
  friend bool operator==(const BinadeTable& a, const BinadeTable& b);

 private:
  friend class TableFiller;
  friend Classes classify(const BinadeTable& table, const Boundaries& limits);
  std::size_t stride() const { return cuts().size() + 2; }             // segments, then negative
  std::size_t row_count() const { return counts_.size() / stride(); }  // including empty rows
  Row row(std::size_t index) const;
  Interval at_or_above(const Row& row, std::uint64_t fraction) const;
  bool none_reaches(Magnitude m) const { return !largest_ || *largest_ < m; }
  bool all_reach(Magnitude m) const { return smallest_ && *smallest_ >= m; }
  std::size_t row_at(int exponent);  // the row's index in counts_; inserts the row if it is missing
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

/// Counts of finite nonzero values by the result of rounding them to a format.
struct Classes {
  Interval flushed_to_zero, subnormal, normal, overflow;

  Classes& operator+=(const Classes& other);
  friend bool operator==(const Classes&, const Classes&) = default;
};

/// Returns the classes of the table's values after rounding to a format with these boundaries.
Classes classify(const BinadeTable& table, const Boundaries& limits);

}  // namespace halfscope
