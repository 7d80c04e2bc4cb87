// SPDX-License-Identifier: Apache-2.0
#include "analyzers/formats/table_noise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace halfscope::analyzers::formats {

using underflow::NoiseRatio;
using underflow::ScaledTable;
using underflow::Target;

namespace {

/// A sum of squares, or a mean of them: lower bound, estimate, upper bound.
struct SquaresEstimate {
  double low = 0, likely = 0, high = 0;
};

/// Values between two magnitudes, all in one binade after scaling.
struct Piece {
  double low = 0, high = 0;
  double quantum = 0;  ///< distance between representable numbers there
};

SquaresEstimate squares_between(double low, double high) {
  return {low * low, (low * low + low * high + high * high) / 3, high * high};
}

/// Returns the integral of the squared distance to the nearest integer, from 0 to t.
double distance_integral(double t) {
  const double whole = std::floor(t), rest = t - whole;
  const double part =
      rest <= 0.5 ? rest * rest * rest / 3 : 1.0 / 12 - (1 - rest) * (1 - rest) * (1 - rest) / 3;
  return whole / 12 + part;
}

double distance(double t) { return std::abs(t - std::nearbyint(t)); }

/// Returns squared distances to the nearest multiple of the quantum: least, mean, largest.
SquaresEstimate rounding_error(const Piece& p) {
  const double t0 = p.low / p.quantum, t1 = p.high / p.quantum;
  const bool has_multiple = std::floor(t1) > std::floor(t0) || std::floor(t0) == t0;
  const bool has_midpoint = std::floor(t1 + 0.5) > std::floor(t0 + 0.5);
  const double least = has_multiple ? 0 : std::min(distance(t0), distance(t1));
  const double most = has_midpoint ? 0.5 : std::max(distance(t0), distance(t1));
  const double mean = t1 > t0 ? (distance_integral(t1) - distance_integral(t0)) / (t1 - t0)
                              : distance(t0) * distance(t0);
  const double unit = p.quantum * p.quantum;
  // Differences of integrals cancel if a segment is narrow.
  return {least * least * unit, std::clamp(mean, least * least, most * most) * unit,
          most * most * unit};
}

double decibels(double signal, double noise) {
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(signal / noise);
}

NoiseRatio noise_ratio(const SquaresEstimate& signal, const SquaresEstimate& noise) {
  // Bound of the rounding of the sums and the logarithm: about 10^4 roundings of 2^-53.
  constexpr double kSlack = 1e-9;
  NoiseRatio ratio;
  ratio.db = decibels(signal.likely, noise.likely);
  ratio.low_db = decibels(signal.low, noise.high) - kSlack;
  ratio.high_db = decibels(signal.high, noise.low) + kSlack;
  return ratio;
}

/// Sums the squares of a histogram's values, and of their errors.
class TableNoise {
 public:
  /// All sums are in units of 2^unit, so that no square leaves binary64's range.
  TableNoise(const Target& target, int k, int unit)
      : target_(target), k_(k), unit_(unit), flushed_below_(flush_limit()) {}

  void add(const ScaledTable& t) {
    const BinadeTable& table = t.table.exact();
    for (const BinadeTable::Row& row : table.rows()) {
      for (std::size_t i = 0; i < row.segments.size(); ++i) {
        if (row.segments[i] == 0) continue;
        const auto [first, last] = table.ends_of(row, i);
        // The largest value is known exactly, and may weigh more than all others.
        const Magnitude largest = *table.largest();
        const bool has_largest = first <= largest && largest <= last;
        const std::uint64_t others = row.segments[i] - (has_largest ? 1 : 0);
        if (has_largest) add_segment(t, largest, largest, 1);
        if (others == 0) continue;
        add_segment(t, std::max(first, *table.smallest()), std::min(last, largest),
                    static_cast<double>(others));
      }
    }
  }

  NoiseRatio ratio() const { return noise_ratio(signal_, noise_); }

 private:
  double flush_limit() const {
    if (target_.subnormals == Subnormals::keep) return 0;
    return in_units(target_.boundaries(1.0, 1.0).nonzero, 0);
  }
  /// Returns a magnitude times 2^k, in units of 2^unit.
  double in_units(const Magnitude& m, int k) const {
    return to_double(Magnitude{m.exponent + k - unit_, m.fraction});
  }

  void add_segment(const ScaledTable& t, const Magnitude& first, const Magnitude& last, double n) {
    const double low = in_units(first, k_) / t.scale, high = in_units(last, k_) / t.scale;
    add(signal_, squares_between(low, high), n);
    SquaresEstimate sum{std::numeric_limits<double>::infinity(), 0, 0};
    // Split where the quantum changes: at most once, and only if the scale is no power of two.
    for (double start = low;;) {
      int binade = 0;
      std::frexp(start, &binade);  // start is in [2^(binade - 1), 2^binade)
      const double limit = std::ldexp(1.0, binade);
      const double end = std::min(high, limit);
      const SquaresEstimate error = error_in(t, start, end, binade - 1 + unit_, first.exponent);
      const double share = high > low ? (end - start) / (high - low) : 1;
      sum.low = std::min(sum.low, error.low);
      sum.likely += share * error.likely;
      sum.high = std::max(sum.high, error.high);
      if (end >= high) break;
      start = end;
    }
    add(noise_, sum, n);
  }

  /// `binade`: exponent of the scaled values; `row`: exponent of their row in the histogram.
  SquaresEstimate error_in(const ScaledTable& t, double low, double high, int binade,
                           int row) const {
    const Format& f = target_.format;
    const int quantum = std::max(binade, f.emin()) - f.fraction_bits();
    if (high < flushed_below_) return squares_between(low, high);
    if (t.scale == 1 && multiples_of(t.table.exact(), row) + k_ >= quantum &&
        low >= flushed_below_) {
      return {};  // every value is a number of the format
    }
    const double step = std::ldexp(1.0, quantum - unit_);
    SquaresEstimate error = rounding_error({low, high, step});
    if (t.scale != 1) {  // the ends were rounded, so values may be anywhere
      error.low = 0;
      error.high = step * step / 4;
    }
    if (low < flushed_below_) error.high = std::max(error.high, high * high);
    return error;
  }

  /// Returns the largest known e such that every value of a row is a multiple of 2^e.
  static int multiples_of(const BinadeTable& table, int row) {
    const int by_length = row - table.significant_bits() + 1;
    return std::max(by_length, table.lowest_bit().value_or(by_length));
  }

  static void add(SquaresEstimate& sum, const SquaresEstimate& each, double n) {
    sum.low += n * each.low;
    sum.likely += n * each.likely;
    sum.high += n * (each.high + std::numeric_limits<double>::min() * (each.high > 0 ? 1 : 0));
  }

  const Target& target_;
  int k_, unit_;
  double flushed_below_;
  SquaresEstimate signal_, noise_;
};

}  // namespace

std::optional<NoiseRatio> estimate_noise(const underflow::TensorFindings& tensor,
                                         const Target& target, int k) {
  std::optional<int> unit;
  for (const ScaledTable& t : tensor.tables) {
    if (!t.table.is_exact()) return std::nullopt;  // positions in a bucket are unknown
    if (t.table.largest()) unit = std::max(unit.value_or(-5000), t.table.largest()->exponent + k);
  }
  if (!unit) return std::nullopt;
  TableNoise noise(target, k, *unit);
  for (const ScaledTable& t : tensor.tables) {
    if (t.table.largest()) noise.add(t);
  }
  return noise.ratio();
}

}  // namespace halfscope::analyzers::formats
