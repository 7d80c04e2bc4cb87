// SPDX-License-Identifier: Apache-2.0
// A table of values of which some are known only between bounds, as a histogram has them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "halfscope/table/binade_table.hpp"
#include "halfscope/table/rare.hpp"

namespace halfscope {

inline constexpr std::size_t kMostSpans = 4096;

/// `count` values of which each has a magnitude in [first, last].
struct Span {
  std::optional<Magnitude> first;  ///< empty: zeros may be among them
  std::optional<Magnitude> last;   ///< empty: infinities and NaN may be among them
  bool nan = true;                 ///< whether NaN may be, where `last` is empty
  std::uint64_t count = 0;
};

/// A binade table, exact, and beside it spans. Tables add: in any order and any split the result is
/// the same, up to kMostSpans different ones: of more, as of many histograms with buckets of their
/// own, the ends are moved outward to eighths of binades, then to whole ones. What is asked of it
/// is answered by the narrowest interval that the spans allow.
class BoundedTable {
 public:
  BoundedTable(BinadeTable exact = BinadeTable());  // NOLINT: a table is one without spans

  /// Throws std::invalid_argument where first is above last. Spans of the same ends are one.
  void add(const Span& span);
  /// Says that no finite value so far is larger, whatever the spans allow.
  void limit_largest(Magnitude m);
  /// Says that infinities and NaN were left out of the source without a count.
  void set_nonfinite_unknown() { nonfinite_known_ = false; }

  /// As BinadeTable::merge and scaled_by_power_of_two.
  void merge(const BoundedTable& other);
  BoundedTable scaled_by_power_of_two(int k) const;

  /// The values that are known exactly, and the others, ascending.
  const BinadeTable& exact() const { return exact_; }
  const std::vector<Span>& spans() const { return between_->spans; }
  bool is_exact() const { return spans().empty(); }
  bool nonfinite_known() const { return nonfinite_known_; }

  std::uint64_t total() const;
  Interval zero() const;
  Interval nan() const;
  Interval inf() const;
  Interval finite_nonzero() const;
  /// Finite values with magnitude at or above m; those of a span that may be infinite count as
  /// perhaps.
  Interval at_or_above(Magnitude m) const;
  /// The same for many magnitudes, ascending, in one pass.
  std::vector<Interval> at_or_above(std::span<const Magnitude> ascending) const;

  /// The largest finite magnitude: the most and the least that it can be. Empty where there is no
  /// finite nonzero value, or none for sure; `largest` also where nothing bounds it.
  std::optional<Magnitude> largest() const;
  std::optional<Magnitude> largest_at_least() const;
  /// The smallest nonzero magnitude: the least and the most that it can be; `smallest` is empty
  /// where values may be as small as one likes.
  std::optional<Magnitude> smallest() const;
  std::optional<Magnitude> smallest_at_most() const;

  /// Calls `visit` for all finite nonzero values, part by part: the magnitudes between which they
  /// lie (empty: as small, as large as one likes), and how many surely and perhaps do.
  using PartVisitor = std::function<void(const std::optional<Magnitude>& first,
                                         const std::optional<Magnitude>& last, Interval)>;
  void for_each_part(const PartVisitor& visit) const;

  friend bool operator==(const BoundedTable& a, const BoundedTable& b);

 private:
  void merge_spans(const BoundedTable& other);
  bool none_reaches(Magnitude m) const;
  void widen_spans(int fraction_bits);

  /// What is known between bounds alone.
  struct Between {
    std::vector<Span> spans;         ///< ascending by (first, last, nan), all different
    std::optional<Magnitude> limit;  ///< limit_largest()
    // Of the spans, since every question asks for them:
    std::optional<Magnitude> last;  ///< the largest end
    bool open = false;              ///< some have none

    void note_end(const Span& span);
  };

  BinadeTable exact_;
  Rare<Between> between_;
  bool nonfinite_known_ = true;
};

/// As of a BinadeTable. Values that may be zero, infinite or NaN count as perhaps.
Classes classify(const BoundedTable& table, const Boundaries& limits);

}  // namespace halfscope
