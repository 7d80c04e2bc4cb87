// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/histogram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace halfscope::analyzers::readers::common {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kMostCounted = 0x1p53;  // above, binary64 skips whole numbers

/// The binary64 numbers next to x. Values are binary64, so "below x" is "at most before(x)".
double before(double x) { return std::nextafter(x, -kInfinity); }
double after(double x) { return std::nextafter(x, kInfinity); }

/// The numbers low <= x <= high; empty if low > high.
struct Range {
  double low, high;

  bool holds(double x) const { return low <= x && x <= high; }
  bool empty() const { return low > high; }
  void clip(const Range& to) {
    low = std::max(low, to.low);
    high = std::min(high, to.high);
  }
};

/// `count` values in a range.
struct Part {
  Range range;
  std::uint64_t count;
};

/// Values in no bucket: below or above all buckets, or NaN.
struct LeftOut {
  Range below, above;
  std::uint64_t count;
  bool nan;  ///< NaN may be among them
};

std::uint64_t whole(double count, std::string_view what) {
  const bool in_range = count >= 0 && count <= kMostCounted;
  const auto number = static_cast<std::uint64_t>(in_range ? count : 0);
  if (!in_range || static_cast<double>(number) != count) {
    throw std::invalid_argument(
        fmt::format("{} is {}, expected a whole number from 0 to 2^53", what, count));
  }
  return number;
}

void check_edges(const Histogram& h) {
  if (h.edges.size() != h.counts.size() + 1) {
    throw std::invalid_argument(
        fmt::format("{} edges and {} counts, expected one edge more than counts", h.edges.size(),
                    h.counts.size()));
  }
  for (std::size_t i = 0; i + 1 < h.edges.size(); ++i) {
    if (h.edges[i] <= h.edges[i + 1]) continue;
    throw std::invalid_argument(fmt::format(
        "edge {} is {} and the next {}, expected them to ascend", i, h.edges[i], h.edges[i + 1]));
  }
}

/// The occupied buckets, ascending.
std::vector<Part> parts_of(const Histogram& h) {
  std::vector<Part> parts;
  parts.reserve(h.counts.size());
  for (std::size_t i = 0; i < h.counts.size(); ++i) {
    const std::uint64_t count = whole(h.counts[i], "a count");
    if (count == 0) continue;
    const double left = h.edges[i], right = h.edges[i + 1];
    const bool closed = left == right || (h.last_closed && i + 1 == h.counts.size());
    parts.push_back({{left - h.slack, (closed ? right : before(right)) + h.slack}, count});
  }
  return parts;
}

std::uint64_t sum_of(const std::vector<Part>& parts) {
  double sum = 0;
  for (const Part& part : parts) sum += static_cast<double>(part.count);
  return whole(sum, "the sum of the counts");
}

LeftOut left_out_of(const Histogram& h, std::uint64_t sum) {
  const std::uint64_t total = h.total ? whole(*h.total, "the number of values") : sum;
  if (total < sum) {
    throw std::invalid_argument(fmt::format("{} values, and the buckets hold {}", total, sum));
  }
  const double back = h.edges.back();
  return {{-kInfinity, before(h.edges.front())},
          {h.last_closed ? after(back) : back, kInfinity},
          total - sum,
          true};
}

/// Adds values to a table, by their range.
class Filler {
 public:
  explicit Filler(BoundedTable& table) : table_(table) {}

  void add(const Part& part) {
    if (part.count == 0) return;
    if (part.range.low == part.range.high) {
      add_value(part.range.low, part.count);
    } else {
      table_.add(span_of(part.range, part.count));
    }
  }

  void add_nan(std::uint64_t count) {
    SpecialCounts specials;
    specials.nan = count;
    exact_.add_specials(specials);
  }

  void add(const LeftOut& left) {
    if (left.count == 0) return;
    const bool below = !left.below.empty(), above = !left.above.empty();
    if (!left.nan && below != above) {
      add(Part{below ? left.below : left.above, left.count});
      return;
    }
    Span span = span_of(below ? left.below : left.above, left.count);
    if (below && above) {
      const Span other = span_of(left.above, left.count);
      span.first = std::min(span.first, other.first);  // empty means zero, the least
      if (span.last && other.last) {
        span.last = std::max(span.last, other.last);
      } else {
        span.last.reset();
      }
    }
    if (left.nan) span.last.reset();
    span.nan = left.nan;
    table_.add(span);
  }

  void add_value(double x, std::uint64_t count) {
    SpecialCounts specials;
    if (x == 0) {
      specials.zero = count;
    } else if (std::isinf(x)) {
      (x > 0 ? specials.positive_infinity : specials.negative_infinity) = count;
    } else {
      return exact_.add(magnitude_of(std::abs(x)), x < 0, count);
    }
    exact_.add_specials(specials);
  }

  void finish() { table_.merge(exact_); }

 private:
  static Magnitude beyond_finite() { return {std::numeric_limits<double>::max_exponent, 0}; }

  static Span span_of(const Range& range, std::uint64_t count) {
    const double low = std::abs(range.low), high = std::abs(range.high);
    const double least = std::min(low, high), most = std::max(low, high);
    Span span;
    if (!range.holds(0)) span.first = std::isinf(least) ? beyond_finite() : magnitude_of(least);
    if (!std::isinf(most)) span.last = magnitude_of(most);
    span.nan = false;
    span.count = count;
    return span;
  }

  BoundedTable& table_;
  BinadeTable exact_;
};

/// Removes the value x from the part that holds it. If `min` is true, x is the lowest of all values
/// and is in the first part that can hold it; else x is the highest, in the last such part.
void take(double x, bool min, std::vector<Part>& parts, LeftOut& left) {
  const auto take_from = [x](Part& part) {
    if (part.count == 0 || !part.range.holds(x)) return false;
    --part.count;
    return true;
  };
  const auto take_left_out = [&] {
    if (left.count == 0 || !(min ? left.below : left.above).holds(x)) return false;
    --left.count;
    return true;
  };
  if (take_left_out()) return;
  if (min ? std::any_of(parts.begin(), parts.end(), take_from)
          : std::any_of(parts.rbegin(), parts.rend(), take_from)) {
    return;
  }
  // If all values in no bucket lie on one side, the lowest may lie above the buckets.
  if (left.count != 0 && (left.above.holds(x) || left.below.holds(x))) {
    --left.count;
    return;
  }
  throw std::invalid_argument(
      fmt::format("the {} is {}, and no occupied bucket holds that", min ? "min" : "max", x));
}

/// Limits a part to the range `all`. Narrow buckets keep their edges, so that equal buckets of many
/// histograms can be added.
void clip(Part& part, const Range& all) {
  Range clipped = part.range;
  clipped.clip(all);
  if (clipped.empty()) {
    throw std::invalid_argument(
        fmt::format("min and max are {} and {}, and an occupied bucket lies outside of them",
                    all.low, all.high));
  }
  const double low = std::abs(part.range.low), high = std::abs(part.range.high);
  const bool narrow = !part.range.holds(0) && std::max(low, high) <= 2 * std::min(low, high);
  if (!narrow || clipped.low == clipped.high) part.range = clipped;
}

/// Applies min and max: the range of all values, and two values that exist.
void apply_extremes(const Histogram& h, std::vector<Part>& parts, LeftOut& left, Filler& filler) {
  const bool min = h.min && !std::isnan(*h.min), max = h.max && !std::isnan(*h.max);
  if (h.min && h.max && !min && !max && left.count != 0) {
    filler.add_nan(1);
    --left.count;
  }
  left.nan = !min && !max;
  const Range all = {min ? *h.min : -kInfinity, max ? *h.max : kInfinity};
  for (Part& part : parts) clip(part, all);
  left.below.clip(all);
  left.above.clip(all);
  if (min) {
    take(all.low, true, parts, left);
    filler.add_value(all.low, 1);
  }
  if (max && !(min && all.low == all.high)) {
    take(all.high, false, parts, left);
    filler.add_value(all.high, 1);
  }
  if (left.count != 0 && !left.nan && left.below.empty() && left.above.empty()) {
    throw std::invalid_argument(fmt::format(
        "{} more values than the buckets hold, and min and max are inside of them", left.count));
  }
}

}  // namespace

BoundedTable table_of(const Histogram& h) {
  check_edges(h);
  std::vector<Part> parts = parts_of(h);
  const std::uint64_t sum = sum_of(parts);
  LeftOut left = left_out_of(h, sum);
  BoundedTable table;
  if (!h.nonfinite_known) table.set_nonfinite_unknown();
  if (sum + left.count == 0) return table;
  Filler filler(table);
  apply_extremes(h, parts, left, filler);
  // Sorted by magnitude, as in the table, so that each part is added at the table's end.
  const auto least = [](const Part& p) {
    return p.range.holds(0) ? 0 : std::min(std::abs(p.range.low), std::abs(p.range.high));
  };
  const auto upper =
      std::find_if(parts.begin(), parts.end(), [](const Part& p) { return p.range.high > 0; });
  std::reverse(parts.begin(), upper);
  std::inplace_merge(parts.begin(), upper, parts.end(),
                     [&](const Part& a, const Part& b) { return least(a) < least(b); });
  for (const Part& part : parts) filler.add(part);
  filler.add(left);
  filler.finish();
  const double largest =
      std::max(std::abs(h.min.value_or(kInfinity)), std::abs(h.max.value_or(kInfinity)));
  const bool known = h.min && h.max && std::isfinite(*h.min) && std::isfinite(*h.max);
  if (known && largest > 0) table.limit_largest(magnitude_of(largest));
  return table;
}

bool hides_underflow(const BoundedTable& table) {
  const Magnitude kept_at_1 = boundaries(kBinary16).nonzero;
  Magnitude flushed_at_most = kept_at_1;
  flushed_at_most.exponent -= 40;
  return std::any_of(table.spans().begin(), table.spans().end(), [&](const Span& span) {
    const bool from_zero = !span.first || *span.first < flushed_at_most;
    return from_zero && (!span.last || *span.last >= kept_at_1);
  });
}

}  // namespace halfscope::analyzers::readers::common
