// SPDX-License-Identifier: Apache-2.0
// A table of values, some known only as bounds, such as the buckets of a histogram.
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

/// `count` values, each with a magnitude in [first, last].
struct Span {
  std::optional<Magnitude> first;  ///< empty: some may be zeros
  std::optional<Magnitude> last;   ///< empty: some may be infinities or NaN
  bool nan = true;                 ///< with an empty `last`: some may be NaN
  std::uint64_t count = 0;
};

/// An exact binade table, plus spans. Tables can be added: the result is the same for any order and
/// any division, as long as there are at most kMostSpans different spans. If there are more, as in
/// a sum of many histograms with different buckets, their ends are moved outward to eighths of
/// binades, then to whole binades. Every result is the narrowest interval that the spans allow.
class BoundedTable {
 public:
  BoundedTable(BinadeTable exact = BinadeTable());  // NOLINT: a table is one without spans

  /// Throws std::invalid_argument if first is above last. Spans with the same ends are combined.
  void add(const Span& span);
  /// Declares that no finite value added so far is larger, whatever the spans allow.
  void limit_largest(Magnitude m);
  /// Declares that the source omits infinities and NaNs without counting them.
  void set_nonfinite_unknown() { nonfinite_known_ = false; }

  /// See BinadeTable::merge and scaled_by_power_of_two.
  void merge(const BoundedTable& other);
  BoundedTable scaled_by_power_of_two(int k) const;

  /// The values that are known exactly; spans(): the others, ascending.
  const BinadeTable& exact() const { return exact_; }
  const std::vector<Span>& spans() const { return between_->spans; }
  bool is_exact() const { return spans().empty(); }
  bool nonfinite_known() const { return nonfinite_known_; }

  std::uint64_t total() const;
  Interval zero() const;
  Interval nan() const;
  Interval inf() const;
  Interval finite_nonzero() const;
  /// Number of finite values with a magnitude of at least m. The values of a span that may be
  /// infinite are only in the upper bound.
  Interval at_or_above(Magnitude m) const;
  /// Returns the same for many ascending magnitudes, in one pass.
  std::vector<Interval> at_or_above(std::span<const Magnitude> ascending) const;

  /// Bounds of the largest finite magnitude, from above and from below. largest() is empty without
  /// finite nonzero values or upper bound; largest_at_least() if no value is certainly finite and
  /// nonzero.
  std::optional<Magnitude> largest() const;
  std::optional<Magnitude> largest_at_least() const;
  /// Bounds of the smallest nonzero magnitude, from below and from above. smallest() is empty if
  /// values may be arbitrarily small.
  std::optional<Magnitude> smallest() const;
  std::optional<Magnitude> smallest_at_most() const;

  /// Calls `visit` for all finite nonzero values in parts: with the bounds of their magnitudes
  /// (empty: no bound), and the interval of their number.
  using PartVisitor = std::function<void(const std::optional<Magnitude>& first,
                                         const std::optional<Magnitude>& last, Interval)>;
  void for_each_part(const PartVisitor& visit) const;

  friend bool operator==(const BoundedTable& a, const BoundedTable& b);

 private:
  void merge_spans(const BoundedTable& other);
  bool none_reaches(Magnitude m) const;
  void widen_spans(int fraction_bits);

  /// Values known only as bounds.
  struct Between {
    std::vector<Span> spans;         ///< ascending by (first, last, nan), all different
    std::optional<Magnitude> limit;  ///< set by limit_largest()
    // Summary of the spans, which every query needs:
    std::optional<Magnitude> last;  ///< the largest end
    bool open = false;              ///< true if a span has no end

    void note_end(const Span& span);
  };

  BinadeTable exact_;
  Rare<Between> between_;
  bool nonfinite_known_ = true;
};

/// See classify() for BinadeTable. Values that may be zero, infinite or NaN count only in the upper
/// bounds.
Classes classify(const BoundedTable& table, const Boundaries& limits);

}  // namespace halfscope
