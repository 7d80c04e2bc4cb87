// SPDX-License-Identifier: Apache-2.0
// Converts a binade histogram to a TensorBoard histogram.
#include <algorithm>
#include <cmath>
#include <limits>

#include "halfscope/log/record_event.hpp"

namespace halfscope::log {
namespace {

constexpr int kLowestExponent = -1074;  // smallest of binary64; edge of the zeros' bucket

/// 2^exponent, clamped to finite nonzero numbers, since bucket limits must ascend.
double power_of_two(int exponent) {
  if (exponent > 1023) return std::numeric_limits<double>::max();
  return std::ldexp(1.0, std::max(exponent, kLowestExponent));
}

double value_of(Magnitude m) {
  const double significand = 1.0 + std::ldexp(static_cast<double>(m.fraction), -52);
  return std::min(std::ldexp(significand, m.exponent), std::numeric_limits<double>::max());
}

/// Adds buckets from left to right. A bucket's left edge is the limit of the bucket before it, so a
/// gap between two buckets needs an empty bucket.
class Buckets {
 public:
  explicit Buckets(proto::HistogramProto& histogram) : histogram_(histogram) {}

  void add(double left, double right, std::uint64_t count) {
    const int last = histogram_.bucket_limit_size() - 1;
    if (last < 0 || histogram_.bucket_limit(last) < left) push(left, 0);
    push(right, count);
  }

 private:
  void push(double limit, std::uint64_t count) {
    histogram_.add_bucket_limit(limit);
    histogram_.add_bucket(static_cast<double>(count));
  }
  proto::HistogramProto& histogram_;
};

std::uint64_t positive(const BinadeTable::Row& row) { return row.count() - row.negative; }
std::uint64_t negative(const BinadeTable::Row& row) { return row.negative; }

/// Upper bound of the largest magnitude among the values of one sign. The histogram keeps the exact
/// largest magnitude only for both signs together, so it is that or the upper end of the sign's
/// highest row, whichever is smaller.
template <typename Count>
double largest(const BinadeTable& table, const std::vector<BinadeTable::Row>& rows, Count count) {
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (count(*row) != 0) {
      return std::min(power_of_two(row->exponent + 1), value_of(*table.largest()));
    }
  }
  return 0;
}

template <typename Count>
double smallest(const BinadeTable& table, const std::vector<BinadeTable::Row>& rows, Count count) {
  for (const BinadeTable::Row& row : rows) {
    if (count(row) != 0) return std::max(power_of_two(row.exponent), value_of(*table.smallest()));
  }
  return 0;
}

}  // namespace

proto::HistogramProto histogram(const BinadeTable& table, const Moments& moments) {
  const std::vector<BinadeTable::Row> rows = table.rows();
  const std::uint64_t zeros = table.specials().zero;
  proto::HistogramProto histogram;
  Buckets buckets(histogram);
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (negative(*row) == 0) continue;
    buckets.add(-power_of_two(row->exponent + 1), -power_of_two(row->exponent), negative(*row));
  }
  if (zeros != 0) {
    const double edge = power_of_two(rows.empty() ? kLowestExponent : rows.front().exponent);
    buckets.add(-edge, edge, zeros);
  }
  for (const BinadeTable::Row& row : rows) {
    if (positive(row) == 0) continue;
    buckets.add(power_of_two(row.exponent), power_of_two(row.exponent + 1), positive(row));
  }
  const bool any_negative = largest(table, rows, negative) > 0;
  const bool any_positive = largest(table, rows, positive) > 0;
  if (any_negative) {
    histogram.set_min(-largest(table, rows, negative));
  } else if (zeros == 0) {
    histogram.set_min(smallest(table, rows, positive));
  }
  if (any_positive) {
    histogram.set_max(largest(table, rows, positive));
  } else if (zeros == 0) {
    histogram.set_max(-smallest(table, rows, negative));
  }
  histogram.set_num(static_cast<double>(table.total()));
  const auto finite = static_cast<double>(table.finite_nonzero() + zeros);
  histogram.set_sum(finite == 0 ? 0 : moments.mean * finite);
  histogram.set_sum_squares(moments.sum_squares);
  return histogram;
}

}  // namespace halfscope::log
