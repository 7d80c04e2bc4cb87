// SPDX-License-Identifier: Apache-2.0
#include "analyzers/formats/format_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analyzers/underflow/lowest_scale.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::formats {

using underflow::FormatFit;
using underflow::NoiseRatio;
using underflow::ScaledTable;
using underflow::Target;
using underflow::TensorFindings;

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

bool is_narrow(const Format& f) { return f.width <= 8; }

/// Returns the largest k at which no value overflows. Multiplying by 2^k changes only exponents, so
/// one comparison of fractions decides.
std::optional<int> best_log2(const TensorFindings& tensor, const Format& f) {
  std::optional<int> best;
  for (const underflow::ScaledTable& t : tensor.tables) {
    if (t.table.finite_nonzero().high == 0) continue;
    if (!t.table.largest()) return std::nullopt;  // no bound is known
    const Magnitude overflow = boundaries(f, 1.0, t.scale).overflow;
    const Magnitude largest = *t.table.largest();
    const int k =
        overflow.exponent - largest.exponent - (largest.fraction >= overflow.fraction ? 1 : 0);
    best = std::min(best.value_or(kLastOwnLog2), k);
  }
  return best && *best >= kFirstOwnLog2 ? best : std::nullopt;
}

/// Returns true if a saturating cast clamps and flushes few values. A histogram does not show the
/// effect of clamping on the sum of squares.
bool clamps_few(const Classes& c, std::uint64_t n) {
  constexpr long double kFew = 0.001L;
  return n != 0 && static_cast<long double>(c.flushed_to_zero.high + c.overflow.high) <=
                       kFew * static_cast<long double>(n);
}

bool enough(const std::optional<underflow::NoiseRatio>& noise, double sufficient_snr_db) {
  return noise && noise->db >= sufficient_snr_db;
}

/// Returns true if infinities, other than those of skipped steps, hide the values' size.
bool hides_its_largest(const TensorFindings& t) {
  return t.counts.inf.high > t.whole->skipped_inf && t.computed_in_fp16();
}

/// Returns true if binary32 holds the tensor's values. Its boundaries are no cuts of the histogram,
/// so the extremes decide.
bool fits_binary32(const TensorFindings& t) {
  return std::all_of(t.tables.begin(), t.tables.end(), [](const underflow::ScaledTable& scaled) {
    if (scaled.table.finite_nonzero().high == 0) return true;
    if (!scaled.table.largest() || !scaled.table.smallest()) return false;
    const Boundaries limits = boundaries(kBinary32, 1.0, scaled.scale);
    return *scaled.table.largest() < limits.overflow && *scaled.table.smallest() >= limits.nonzero;
  });
}

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

void set_skipped_nonfinite(underflow::Analysis& analysis) {
  for (underflow::LogFindings& log : analysis.logs) {
    std::set<std::int64_t> skipped;
    for (const log::StepScalars& scalars : log.scalars) {
      if (scalars.found_inf.value_or(false)) skipped.insert(scalars.step);
    }
    for (TensorFindings& t : log.tensors) {
      if (t.counts.total == 0) continue;
      underflow::WholeFindings& whole = t.whole.set();
      whole.skipped_nan = whole.skipped_inf = 0;
      for (const underflow::StepFindings& step : t.per_step) {
        if (!t.loss_scaled || !skipped.contains(step.step)) continue;
        whole.skipped_nan += step.counts.nan.low;
        whole.skipped_inf += step.counts.inf.low;
      }
    }
  }
}

void judge_at_best(FormatFit& fit, const TensorFindings& tensor, double sufficient_snr_db) {
  fit.fits_at_best = tensor.counts.finite_nonzero.low != 0 && !hides_its_largest(tensor) &&
                     fit.best_log2 && enough(fit.noise_at_best, sufficient_snr_db);
}

void judge_at_1(FormatFit& fit, const TensorFindings& tensor, Subnormals subnormals,
                const std::optional<underflow::NoiseRatio>& noise, double sufficient_snr_db) {
  const Classes at_1 = tensor.classes_at(fit, subnormals, 0);
  const std::uint64_t n = tensor.counts.finite_nonzero.low;
  const bool holds_all = at_1.overflow.high == 0 && enough(noise, sufficient_snr_db);
  fit.fits_at_1 = n != 0 && !hides_its_largest(tensor) &&
                  (holds_all || (fit.saturating && clamps_few(at_1, n)));
}

std::vector<FormatFit> fits_from_tables(const TensorFindings& tensor, Subnormals subnormals,
                                        double sufficient_snr_db) {
  std::vector<FormatFit> all;
  if (underflow::is_bounded(tensor)) {
    return all;  // possible zeros may as well be too small for a format
  }
  for (const std::string_view name : kFitFormats) {
    const NamedFormat& row = *find_format(name);
    const underflow::Target target{row.name, row.format, subnormals};
    FormatFit fit;
    fit.format = row.name;
    fit.best_log2 = best_log2(tensor, row.format);
    if (fit.best_log2) fit.noise_at_best = estimate_noise(tensor, target, *fit.best_log2);
    judge_at_best(fit, tensor, sufficient_snr_db);
    const auto noise_at_1 = estimate_noise(tensor, target, 0);
    for (const bool saturating : {false, true}) {
      if (saturating && !is_narrow(row.format)) continue;
      fit.saturating = saturating;
      judge_at_1(fit, tensor, subnormals, noise_at_1, sufficient_snr_db);
      all.push_back(fit);
    }
  }
  return all;
}

std::optional<underflow::Narrowest> narrowest(const TensorFindings& tensor) {
  if (tensor.whole->fits.empty() || tensor.counts.finite_nonzero.high == 0) return std::nullopt;
  for (const int width : {8, 16, 19}) {
    for (const bool needs_scale : {false, true}) {
      for (const FormatFit& fit : tensor.whole->fits) {  // more precision first
        const bool serves = needs_scale ? fit.fits_at_best : fit.fits_at_1;
        const bool wanted = find_format(fit.format)->format.width == width && !fit.saturating;
        if (serves && wanted) return underflow::Narrowest{fit.format, needs_scale};
      }
    }
  }
  return underflow::Narrowest{fits_binary32(tensor) ? "binary32" : "binary64", false};
}

}  // namespace halfscope::analyzers::formats
