// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/binade_table.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>

namespace halfscope {
namespace {

std::uint64_t sum(std::span<const std::uint64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::uint64_t{0});
}

}  // namespace

BinadeTable::BinadeTable(std::vector<std::uint64_t> cuts) : cuts_(std::move(cuts)) {
  const bool ascending =
      std::adjacent_find(cuts_.begin(), cuts_.end(), std::greater_equal<>()) == cuts_.end();
  if (!ascending || (!cuts_.empty() && (cuts_.front() == 0 || cuts_.back() >= kFractionUnit))) {
    throw std::invalid_argument("binade table: cuts must ascend strictly within (0, 2^52)");
  }
}

std::span<std::uint64_t> BinadeTable::row_at(int exponent) {
  const std::size_t width = stride();
  if (counts_.empty()) {
    first_exponent_ = exponent;
  } else if (exponent < first_exponent_) {
    const auto more = static_cast<std::size_t>(first_exponent_ - exponent);
    counts_.insert(counts_.begin(), more * width, 0);
    first_exponent_ = exponent;
  }
  const std::size_t at = static_cast<std::size_t>(exponent - first_exponent_) * width;
  if (at + width > counts_.size()) counts_.resize(at + width, 0);
  return {counts_.data() + at, width};
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
  const auto segment = static_cast<std::size_t>(
      std::upper_bound(cuts_.begin(), cuts_.end(), m.fraction) - cuts_.begin());
  const std::span<std::uint64_t> row = row_at(m.exponent);
  row[segment] += times;
  if (negative) row.back() += times;
  largest_ = largest_ ? std::max(*largest_, m) : m;
  smallest_ = smallest_ ? std::min(*smallest_, m) : m;
  const int bits = 53 - std::countr_zero(m.fraction | kFractionUnit);
  widen(bits, m.exponent - bits + 1);
}

void BinadeTable::add_specials(const SpecialCounts& counts) {
  specials_.zero += counts.zero;
  specials_.negative_zero += counts.negative_zero;
  specials_.nan += counts.nan;
  specials_.positive_infinity += counts.positive_infinity;
  specials_.negative_infinity += counts.negative_infinity;
}

void BinadeTable::keep_only(const std::vector<std::uint64_t>& cuts) {
  BinadeTable coarse(cuts);
  for (const Row& row : rows()) {
    const std::span<std::uint64_t> to = coarse.row_at(row.exponent);
    for (std::size_t i = 0; i < row.segments.size(); ++i) {
      const std::uint64_t start = i == 0 ? 0 : cuts_[i - 1];
      const auto segment = std::upper_bound(cuts.begin(), cuts.end(), start) - cuts.begin();
      to[static_cast<std::size_t>(segment)] += row.segments[i];
    }
    to.back() = row.negative;
  }
  cuts_ = coarse.cuts_;
  counts_ = std::move(coarse.counts_);
  first_exponent_ = coarse.first_exponent_;
}

void BinadeTable::merge(const BinadeTable& other) {
  if (cuts_ != other.cuts_) {
    std::vector<std::uint64_t> common;
    std::set_intersection(cuts_.begin(), cuts_.end(), other.cuts_.begin(), other.cuts_.end(),
                          std::back_inserter(common));
    BinadeTable coarse = other;
    coarse.keep_only(common);
    keep_only(common);
    merge(coarse);
    return;
  }
  add_specials(other.specials_);
  for (const Row& row : other.rows()) {
    const std::span<std::uint64_t> to = row_at(row.exponent);
    for (std::size_t i = 0; i < row.segments.size(); ++i) to[i] += row.segments[i];
    to.back() += row.negative;
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

std::uint64_t BinadeTable::Row::count() const { return sum(segments); }

std::vector<BinadeTable::Row> BinadeTable::rows() const {
  std::vector<Row> occupied;
  const std::size_t width = stride();
  for (std::size_t at = 0; at < counts_.size(); at += width) {
    const Row row{first_exponent_ + static_cast<int>(at / width),
                  {counts_.data() + at, width - 1},
                  counts_[at + width - 1]};
    if (row.count() != 0) occupied.push_back(row);
  }
  return occupied;
}

std::uint64_t BinadeTable::finite_nonzero() const {
  std::uint64_t count = 0;
  for (const Row& row : rows()) count += row.count();
  return count;
}

std::uint64_t BinadeTable::total() const {
  return finite_nonzero() + specials_.zero + specials_.nan + infinities();
}

Interval BinadeTable::at_or_above(Magnitude m) const {
  if (!largest_ || *largest_ < m) return 0;
  if (*smallest_ >= m) return finite_nonzero();
  std::uint64_t above = 0;
  Interval inside = 0;
  for (const Row& row : rows()) {
    if (row.exponent > m.exponent) above += row.count();
    if (row.exponent != m.exponent) continue;
    // Segments from the first cut at or above the fraction surely count; the one before may.
    const auto cut = std::lower_bound(cuts_.begin(), cuts_.end(), m.fraction);
    const auto first = static_cast<std::size_t>(cut - cuts_.begin()) + 1;
    const bool at_cut = m.fraction == 0 || (cut != cuts_.end() && *cut == m.fraction);
    const std::uint64_t sure = sum(row.segments.subspan(m.fraction == 0 ? 0 : first));
    inside = at_cut ? Interval(sure) : Interval(sure, sure + row.segments[first - 1]);
  }
  return Interval(above) + inside;
}

bool BinadeTable::fits(Format f) const {
  if (!largest_ || significant_bits_ > f.precision) return false;
  return largest_->exponent - *lowest_bit_ <= f.emax - f.min_quantum_exponent();
}

bool BinadeTable::fits_as_is(Format f) const {
  return fits(f) && largest_->exponent <= f.emax && *lowest_bit_ >= f.min_quantum_exponent();
}

bool operator==(const BinadeTable& a, const BinadeTable& b) {
  // Encodings hold occupied rows only, so that two tables grown in different orders compare equal.
  return a.encode() == b.encode();
}

Classes& Classes::operator+=(const Classes& other) {
  flushed_to_zero += other.flushed_to_zero;
  subnormal += other.subnormal;
  normal += other.normal;
  overflow += other.overflow;
  return *this;
}

Classes classify(const BinadeTable& table, const Boundaries& limits) {
  const Interval nonzero = table.at_or_above(limits.nonzero);
  const Interval normal = table.at_or_above(limits.normal);
  const Interval overflow = table.at_or_above(limits.overflow);
  return {without(Interval(table.finite_nonzero()), nonzero), without(nonzero, normal),
          without(normal, overflow), overflow};
}

}  // namespace halfscope
