// SPDX-License-Identifier: Apache-2.0
#include "analyzers/formats/format_fit.hpp"

#include <algorithm>
#include <cmath>

#include "analyzers/formats/table_noise.hpp"
#include "analyzers/underflow/lowest_scale.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::formats {

using underflow::FormatFit;
using underflow::TensorFindings;

namespace {

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
