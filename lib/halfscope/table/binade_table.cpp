// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/binade_table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <stdexcept>

namespace halfscope {
namespace {

/// Limit for the number of values: each count must fit in a word of encode().
constexpr auto kMostInTable = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

}  // namespace

std::size_t BinadeTable::row_at(int exponent) {
  const std::size_t width = stride();
  if (counts_.empty()) {
    first_exponent_ = exponent;
  } else if (exponent < first_exponent_) {
    const auto more = static_cast<std::size_t>(first_exponent_ - exponent);
    counts_.grow_front(more * width);
    first_exponent_ = exponent;
  }
  const std::size_t at = static_cast<std::size_t>(exponent - first_exponent_) * width;
  if (at + width > counts_.size()) counts_.grow_back(at + width - counts_.size());
  return at;
}

void BinadeTable::widen(int significant_bits, std::optional<int> lowest_bit) {
  if (significant_bits == 0) return;
  const bool first = significant_bits_ == 0;
  significant_bits_ = std::max(significant_bits_, significant_bits);
  if (significant_bits_ > kNarrowBits) {
    lowest_bit_.reset();
  } else {
    lowest_bit_ = first ? lowest_bit : std::min(*lowest_bit_, *lowest_bit);
  }
}

void BinadeTable::add(Magnitude m, bool negative, std::uint64_t times) {
  if (times == 0) return;
  const std::size_t segment = cuts_.segment_of(m.fraction);
  const std::size_t row = row_at(m.exponent);
  counts_.add(row + segment, times);
  if (negative) counts_.add(row + stride() - 1, times);
  largest_ = largest_ ? std::max(*largest_, m) : m;
  smallest_ = smallest_ ? std::min(*smallest_, m) : m;
  const int bits = 53 - std::countr_zero(m.fraction | kFractionUnit);
  widen(bits, m.exponent - bits + 1);
}

void BinadeTable::add_specials(const SpecialCounts& counts) {
  if (counts == SpecialCounts()) return;
  SpecialCounts& sum = specials_.set();
  sum.zero += counts.zero;
  sum.negative_zero += counts.negative_zero;
  sum.nan += counts.nan;
  sum.positive_infinity += counts.positive_infinity;
  sum.negative_infinity += counts.negative_infinity;
}

void BinadeTable::keep_only(const std::vector<std::uint64_t>& wanted) {
  BinadeTable coarse(wanted);
  for (const Row& row : rows()) {
    const std::size_t to = coarse.row_at(row.exponent);
    for (std::size_t i = 0; i < row.segments.size(); ++i) {
      coarse.counts_.add(to + coarse.cuts_.segment_of(cuts_.first_of(i)), row.segments[i]);
    }
    coarse.counts_.add(to + coarse.stride() - 1, row.negative);
  }
  cuts_ = coarse.cuts_;
  counts_ = std::move(coarse.counts_);
  first_exponent_ = coarse.first_exponent_;
}

void BinadeTable::merge(const BinadeTable& other) {
  if (other.total() > kMostInTable - std::min(total(), kMostInTable)) {
    throw std::overflow_error(
        "binade table: two tables hold more than 2^63 values together, expected the counts of "
        "tensors; one of them has wrong counts");
  }
  if (cuts_ != other.cuts_) {
    std::vector<std::uint64_t> common;
    std::ranges::set_intersection(cuts(), other.cuts(), std::back_inserter(common));
    BinadeTable coarse = other;
    coarse.keep_only(common);
    keep_only(common);
    merge(coarse);
    return;
  }
  add_specials(other.specials());
  for (std::size_t r = 0; r < other.row_count(); ++r) {
    const Row row = other.row(r);
    if (row.count() == 0) continue;
    const std::size_t to = row_at(row.exponent);
    for (std::size_t i = 0; i < row.segments.size(); ++i) counts_.add(to + i, row.segments[i]);
    counts_.add(to + stride() - 1, row.negative);
  }
  if (other.largest_) largest_ = largest_ ? std::max(*largest_, *other.largest_) : other.largest_;
  if (other.smallest_) {
    smallest_ = smallest_ ? std::min(*smallest_, *other.smallest_) : other.smallest_;
  }
  widen(other.significant_bits_, other.lowest_bit_);
}

BinadeTable BinadeTable::scaled_by_power_of_two(int k) const {
  BinadeTable scaled = *this;
  scaled.first_exponent_ += k;
  if (scaled.largest_) scaled.largest_->exponent += k;
  if (scaled.smallest_) scaled.smallest_->exponent += k;
  if (scaled.lowest_bit_) *scaled.lowest_bit_ += k;
  return scaled;
}

BinadeTable::Row BinadeTable::row(std::size_t index) const {
  const std::size_t segments = stride() - 1;
  const CountSpan counts = counts_.span(index * stride(), stride());
  return {first_exponent_ + static_cast<int>(index), counts.first(segments), counts[segments]};
}

std::vector<BinadeTable::Row> BinadeTable::rows() const {
  std::vector<Row> occupied;
  for (std::size_t i = 0; i < row_count(); ++i) {
    if (row(i).count() != 0) occupied.push_back(row(i));
  }
  return occupied;
}

std::uint64_t BinadeTable::finite_nonzero() const {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < row_count(); ++i) count += row(i).count();
  return count;
}

std::uint64_t BinadeTable::total() const {
  return finite_nonzero() + specials().zero + specials().nan + infinities();
}

Interval BinadeTable::at_or_above(const Row& row, std::uint64_t fraction) const {
  if (fraction == 0) return row.count();
  // Segments from the first cut at or above the fraction count entirely, the one before it partly.
  const auto cut = std::ranges::lower_bound(cuts(), fraction);
  const auto first = static_cast<std::size_t>(cut - cuts().begin()) + 1;
  const std::uint64_t sure = row.segments.subspan(first).sum();
  if (cut != cuts().end() && *cut == fraction) return sure;
  return {sure, sure + row.segments[first - 1]};
}

Interval BinadeTable::at_or_above(Magnitude m) const {
  if (none_reaches(m)) return 0;
  if (all_reach(m)) return finite_nonzero();
  const auto at = static_cast<std::size_t>(m.exponent - first_exponent_);  // between the extremes
  Interval reached = at_or_above(row(at), m.fraction);
  for (std::size_t i = at + 1; i < row_count(); ++i) reached += row(i).count();
  return reached;
}

bool BinadeTable::fits(Format f) const {
  if (!largest_ || significant_bits_ > f.precision) return false;
  return largest_->exponent - *lowest_bit_ <= f.emax - f.min_quantum_exponent();
}

bool BinadeTable::fits_as_is(Format f) const {
  return fits(f) && largest_->exponent <= f.emax && *lowest_bit_ >= f.min_quantum_exponent();
}

bool operator==(const BinadeTable& a, const BinadeTable& b) {
  // Encodings omit empty rows, so tables that grew in different orders compare equal.
  return a.encode() == b.encode();
}

Classes& Classes::operator+=(const Classes& other) {
  flushed_to_zero += other.flushed_to_zero;
  subnormal += other.subnormal;
  normal += other.normal;
  overflow += other.overflow;
  return *this;
}

/// One sweep from the top without allocation, because it is called for many scales.
Classes classify(const BinadeTable& table, const Boundaries& limits) {
  const std::array<Magnitude, 3> first = {limits.nonzero, limits.normal, limits.overflow};
  std::array<Interval, 3> reached;
  std::uint64_t above = 0;  // number of values in higher rows
  for (std::size_t i = table.row_count(); i-- > 0;) {
    const BinadeTable::Row row = table.row(i);
    for (std::size_t k = 0; k < first.size(); ++k) {
      if (first[k].exponent != row.exponent) continue;
      reached[k] = Interval(above) + table.at_or_above(row, first[k].fraction);
    }
    above += row.count();
  }
  for (std::size_t k = 0; k < first.size(); ++k) {  // the extremes allow exact answers
    if (table.none_reaches(first[k])) reached[k] = 0;
    if (table.all_reach(first[k])) reached[k] = above;
  }
  const auto& [nonzero, normal, overflow] = reached;
  return {without(Interval(above), nonzero), without(nonzero, normal), without(normal, overflow),
          overflow};
}

}  // namespace halfscope
