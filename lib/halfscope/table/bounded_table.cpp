// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/bounded_table.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace halfscope {
namespace {

/// Order of spans by (first, last, nan); an empty end compares lowest.
bool comes_before(const Span& a, const Span& b) {
  if (a.first != b.first) return !a.first || (b.first && *a.first < *b.first);
  if (a.last != b.last) return !a.last || (b.last && *a.last < *b.last);
  return !a.last && a.nan < b.nan;  // otherwise `nan` has no meaning
}

/// Combines adjacent spans that are equal except for their counts.
void join_equal(std::vector<Span>& spans) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (kept != 0 && !comes_before(spans[kept - 1], spans[i])) {
      spans[kept - 1].count += spans[i].count;
    } else {
      spans[kept++] = spans[i];
    }
  }
  spans.resize(kept);
}

bool may_be_zero(const Span& s) { return !s.first; }
bool may_be_infinite(const Span& s) { return !s.last; }

/// Interval of the number of values of a kind, if all of them or none may be of it.
Interval perhaps(bool may_be, std::uint64_t count) { return {0, may_be ? count : 0}; }

std::optional<Magnitude> shifted(std::optional<Magnitude> m, int k) {
  if (m) m->exponent += k;
  return m;
}

/// Returns the span with its end limited to the largest finite magnitude, if that is known.
Span up_to(Span span, const std::optional<Magnitude>& most) {
  if (most && (!span.last || *most < *span.last)) {
    span.last = std::max(*most, span.first.value_or(*most));
  }
  return span;
}

/// Returns the larger magnitude; an empty one is the largest of all.
std::optional<Magnitude> larger_or_open(const std::optional<Magnitude>& a,
                                        const std::optional<Magnitude>& b) {
  if (!a || !b) return std::nullopt;
  return std::max(*a, *b);
}

}  // namespace

BoundedTable::BoundedTable(BinadeTable exact) : exact_(std::move(exact)) {}

void BoundedTable::add(const Span& span) {
  if (span.count == 0) return;
  if (span.first && span.last && *span.last < *span.first) {
    throw std::invalid_argument("bounded table: a span ends below where it begins");
  }
  Between& between = between_.set();
  std::vector<Span>& spans = between.spans;
  std::optional<Magnitude>& limit = between.limit;
  between.note_end(span);
  if (limit) limit = larger_or_open(limit, span.last);      // it limited the values before
  if (spans.empty() || comes_before(spans.back(), span)) {  // most sources are sorted
    spans.push_back(span);
    return;
  }
  const auto at = std::lower_bound(spans.begin(), spans.end(), span, comes_before);
  if (at != spans.end() && !comes_before(span, *at)) {
    at->count += span.count;
  } else {
    spans.insert(at, span);
  }
}

void BoundedTable::Between::note_end(const Span& span) {
  if (!span.last) {
    open = true;
  } else if (!last || *last < *span.last) {
    last = span.last;
  }
}

/// Moves the ends of spans outward to fractions of `fraction_bits` bits.
void BoundedTable::widen_spans(int fraction_bits) {
  const std::uint64_t below = (kFractionUnit >> fraction_bits) - 1;
  Between& between = between_.set();
  for (Span& span : between.spans) {
    if (span.first) span.first->fraction &= ~below;
    if (span.last) span.last->fraction |= below;
    between.note_end(span);
  }
  std::sort(between.spans.begin(), between.spans.end(), comes_before);
  join_equal(between.spans);
}

void BoundedTable::limit_largest(Magnitude m) {
  std::optional<Magnitude>& limit = between_.set().limit;
  limit = limit ? std::min(*limit, m) : m;
}

void BoundedTable::merge(const BoundedTable& other) {
  const bool none = finite_nonzero().high == 0, none_there = other.finite_nonzero().high == 0;
  const auto limit = none         ? other.largest()
                     : none_there ? largest()
                                  : larger_or_open(largest(), other.largest());
  exact_.merge(other.exact_);
  merge_spans(other);
  if (limit != largest()) between_.set().limit = limit;
  nonfinite_known_ = nonfinite_known_ && other.nonfinite_known_;
}

void BoundedTable::merge_spans(const BoundedTable& other) {
  if (other.is_exact()) return;
  std::vector<Span> both(spans().size() + other.spans().size());
  std::ranges::merge(spans(), other.spans(), both.begin(), comes_before);
  join_equal(both);
  Between& between = between_.set();
  between.spans = std::move(both);
  between.open = between.open || other.between_->open;
  between.last = std::max(between.last, other.between_->last);  // empty compares lowest
  for (const int bits : {3, 0}) {
    if (between.spans.size() > kMostSpans) widen_spans(bits);
  }
}

BoundedTable BoundedTable::scaled_by_power_of_two(int k) const {
  BoundedTable scaled = *this;
  scaled.exact_ = exact_.scaled_by_power_of_two(k);
  if (is_exact() && !between_->limit) return scaled;
  Between& between = scaled.between_.set();
  for (Span& span : between.spans) {
    span.first = shifted(span.first, k);
    span.last = shifted(span.last, k);
  }
  between.limit = shifted(between.limit, k);
  between.last = shifted(between.last, k);
  return scaled;
}

std::uint64_t BoundedTable::total() const {
  std::uint64_t count = exact_.total();
  for (const Span& span : spans()) count += span.count;
  return count;
}

Interval BoundedTable::zero() const {
  Interval count = exact_.specials().zero;
  for (const Span& span : spans()) {
    if (!may_be_zero(span)) break;  // all further spans have a first magnitude
    count += perhaps(true, span.count);
  }
  return count;
}

Interval BoundedTable::nan() const {
  Interval count = exact_.specials().nan;
  if (!between_->open) return count;
  for (const Span& span : spans()) {
    count += perhaps(may_be_infinite(span) && span.nan, span.count);
  }
  return count;
}

Interval BoundedTable::inf() const {
  Interval count = exact_.infinities();
  if (!between_->open) return count;
  for (const Span& span : spans()) count += perhaps(may_be_infinite(span), span.count);
  return count;
}

Interval BoundedTable::finite_nonzero() const {
  Interval count = exact_.finite_nonzero();
  for (const Span& span : spans()) {
    const bool sure = !may_be_zero(span) && !may_be_infinite(span);
    count += Interval(sure ? span.count : 0, span.count);
  }
  return count;
}

bool BoundedTable::none_reaches(Magnitude m) const {
  const auto most = largest();
  return most ? *most < m : finite_nonzero().high == 0;
}

Interval BoundedTable::at_or_above(Magnitude m) const {
  if (none_reaches(m)) return 0;
  Interval count = exact_.at_or_above(m);
  for (const Span& span : spans()) {
    if (span.last && *span.last < m) continue;
    const bool sure = span.first && *span.first >= m && !may_be_infinite(span);
    count += Interval(sure ? span.count : 0, span.count);
  }
  return count;
}

/// A span's values may be at or above all limits up to its end, and surely are up to its beginning.
std::vector<Interval> BoundedTable::at_or_above(std::span<const Magnitude> ascending) const {
  const auto up_to = [&](const Magnitude& m) {
    const auto end = std::upper_bound(ascending.begin(), ascending.end(), m);
    return static_cast<std::size_t>(end - ascending.begin());
  };
  std::vector<Interval> counts(ascending.size() + 1);  // first, spans that end before a limit
  for (const Span& span : spans()) {
    counts[span.last ? up_to(*span.last) : ascending.size()] += Interval(0, span.count);
    const bool sure = span.first && !may_be_infinite(span);
    counts[sure ? up_to(*span.first) : 0] += Interval(span.count, 0);
  }
  Interval above = counts.back();
  counts.pop_back();
  for (std::size_t i = counts.size(); i-- > 0;) {
    const Interval ending = counts[i];
    counts[i] = none_reaches(ascending[i]) ? Interval(0) : above + exact_.at_or_above(ascending[i]);
    above += ending;
  }
  return counts;
}

std::optional<Magnitude> BoundedTable::largest() const {
  const std::optional<Magnitude>& limit = between_->limit;
  if (between_->open) return limit;
  const auto most = std::max(exact_.largest(), between_->last);  // an empty optional compares
                                                                 // lowest
  return most && limit ? std::min(*most, *limit) : most;
}

std::optional<Magnitude> BoundedTable::largest_at_least() const {
  const auto surely = [](const Span& span) { return span.first && !may_be_infinite(span); };
  const auto last = std::find_if(spans().rbegin(), spans().rend(), surely);  // sorted by first
  return last == spans().rend() ? exact_.largest() : std::max(exact_.largest(), last->first);
}

std::optional<Magnitude> BoundedTable::smallest() const {
  const std::optional<Magnitude> least = exact_.smallest();
  if (is_exact()) return least;
  const auto& first = spans().front().first;  // the lowest; empty if any is empty
  return first && least ? std::min(first, least) : first;
}

std::optional<Magnitude> BoundedTable::smallest_at_most() const {
  std::optional<Magnitude> most = exact_.smallest();
  for (const Span& span : spans()) {
    if (may_be_zero(span) || may_be_infinite(span)) continue;
    most = most ? std::min(*most, *span.last) : span.last;
  }
  return most;
}

void BoundedTable::for_each_part(const PartVisitor& visit) const {
  for (const BinadeTable::Row& row : exact_.rows()) {
    for (std::size_t i = 0; i < row.segments.size(); ++i) {
      if (row.segments[i] == 0) continue;
      const auto [first, last] = exact_.ends_of(row, i);
      visit(std::max(first, *exact_.smallest()), std::min(last, *exact_.largest()),
            row.segments[i]);
    }
  }
  const auto most = largest();
  for (const Span& span : spans()) {
    const bool sure = !may_be_zero(span) && !may_be_infinite(span);
    visit(span.first, up_to(span, most).last, Interval(sure ? span.count : 0, span.count));
  }
}

bool operator==(const BoundedTable& a, const BoundedTable& b) {
  const auto same = [](const Span& x, const Span& y) {
    return !comes_before(x, y) && !comes_before(y, x) && x.count == y.count;
  };
  return a.exact_ == b.exact_ && a.largest() == b.largest() &&
         a.nonfinite_known_ == b.nonfinite_known_ && std::ranges::equal(a.spans(), b.spans(), same);
}

namespace {

/// Range of classes of a span's values: class of its first magnitude to class of its last.
struct ClassRange {
  int first = 0, last = 3;  // 0: flushed to zero, ... 3: overflow
};

ClassRange classes_of(const Span& span, const std::array<Magnitude, 3>& starts) {
  ClassRange range{0, 3};
  for (int k = 0; k < 3; ++k) {
    const Magnitude& start = starts[static_cast<std::size_t>(k)];
    if (span.first && *span.first >= start) range.first = k + 1;
    if (span.last && *span.last < start) range.last = std::min(range.last, k);
  }
  return range;
}

}  // namespace

/// A span's values certainly belong to a class only if it is the only possible class. The limit on
/// the largest value narrows a span's range.
Classes classify(const BoundedTable& table, const Boundaries& limits) {
  Classes sum = classify(table.exact(), limits);
  const std::array<Magnitude, 3> starts = {limits.nonzero, limits.normal, limits.overflow};
  const std::array<Interval*, 4> counts = {&sum.flushed_to_zero, &sum.subnormal, &sum.normal,
                                           &sum.overflow};
  const auto most = table.spans().empty() ? std::nullopt : table.largest();
  for (const Span& span : table.spans()) {
    const bool uncertain = may_be_zero(span) || may_be_infinite(span);
    const ClassRange range = classes_of(up_to(span, most), starts);
    for (int k = range.first; k <= range.last; ++k) {
      const bool sure = range.first == range.last && !uncertain;
      *counts[static_cast<std::size_t>(k)] += Interval(sure ? span.count : 0, span.count);
    }
  }
  return sum;
}

}  // namespace halfscope
