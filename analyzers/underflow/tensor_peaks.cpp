// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/tensor_peaks.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace halfscope::analyzers::underflow {

using frames::StepPeak;

namespace {

/// Answers whether a magnitude between `low` and `high` is at or above a boundary.
Answer reaches(double low, double high, const Magnitude& boundary) {
  const auto is_at_least = [&](double x) { return x > 0 && magnitude_of(x) >= boundary; };
  return is_at_least(low) ? Answer::yes : is_at_least(high) ? Answer::perhaps : Answer::no;
}

Answer worse(Answer a, Answer b) { return std::max(a, b); }
Answer opposite(Answer a) {
  return a == Answer::yes ? Answer::no : a == Answer::no ? Answer::yes : Answer::perhaps;
}

void add_finite(TensorPeaks& t, const StepPeak& peak, const Boundaries& limits) {
  const double least = peak.at_least.value_or(peak.max_abs);
  if (!t.max_abs || peak.max_abs > *t.max_abs) {
    t.max_abs = peak.max_abs;
    t.max_step = peak.step;
  }
  t.max_abs_at_least = std::max(t.max_abs_at_least.value_or(0.0), least);
  t.overflows = worse(t.overflows, reaches(least, peak.max_abs, limits.overflow));
  // A tensor with only zeros has nothing to flush.
  const Answer kept = reaches(least, peak.max_abs, limits.nonzero);
  const Answer flushed = least > 0 ? opposite(kept) : std::min(opposite(kept), Answer::perhaps);
  if (peak.max_abs > 0) t.all_flushed = worse(t.all_flushed, flushed);
}

/// Answers whether some nonzero values become zero.
Answer flushes(const TensorPeaks& t, const Boundaries& limits) {
  if (t.all_flushed == Answer::yes) return Answer::yes;
  const bool all_kept =
      t.min_abs_nonzero && reaches(*t.min_abs_nonzero, 0, limits.nonzero) == Answer::yes;
  return all_kept || t.max_abs == 0.0 ? Answer::no : Answer::perhaps;
}

void finish(TensorPeaks& t, const Analysis& analysis) {
  std::stable_sort(t.steps.begin(), t.steps.end(),
                   [](const StepPeak& a, const StepPeak& b) { return a.step < b.step; });
  t.at_scale = is_gradient(t.role) ? analysis.loss_scale : 1.0;
  const Boundaries limits = analysis.target.boundaries(t.at_scale, 1.0);
  bool smallest_known = true;
  for (const StepPeak& peak : t.steps) {
    if (std::isnan(peak.max_abs)) t.nan_steps.push_back(peak.step);
    if (std::isinf(peak.max_abs)) t.inf_steps.push_back(peak.step);
    if (std::isfinite(peak.max_abs)) add_finite(t, peak, limits);
    if (peak.max_abs == 0) continue;
    smallest_known = smallest_known && peak.min_abs_nonzero;
    if (!smallest_known) continue;
    t.min_abs_nonzero =
        std::min(t.min_abs_nonzero.value_or(*peak.min_abs_nonzero), *peak.min_abs_nonzero);
  }
  if (!smallest_known) t.min_abs_nonzero.reset();
  if (t.max_abs_at_least == t.max_abs) t.max_abs_at_least.reset();
  t.flushes = flushes(t, limits);
}

}  // namespace

std::string_view name_of(Answer answer) {
  switch (answer) {
    case Answer::no: return "no";
    case Answer::perhaps: return "perhaps";
    case Answer::yes: return "yes";
  }
  return "perhaps";
}

std::vector<TensorPeaks> tensor_peaks(const Analysis& analysis) {
  std::vector<TensorPeaks> tensors;
  for (const LogFindings& log : analysis.logs) {
    const auto begin = static_cast<std::ptrdiff_t>(tensors.size());
    std::map<std::string_view, std::size_t> places;  // by name
    for (const StepPeak& peak : log.peaks) {
      if (peak.tensor.empty()) continue;
      const auto [place, is_new] = places.try_emplace(peak.tensor, tensors.size());
      if (is_new) {
        tensors.emplace_back();
        tensors.back().log = log.name;
        tensors.back().name = peak.tensor;
        tensors.back().role = peak.role;
      }
      tensors[place->second].steps.push_back(peak);
    }
    std::stable_sort(tensors.begin() + begin, tensors.end(),
                     [](const auto& a, const auto& b) { return a.role < b.role; });
  }
  for (TensorPeaks& t : tensors) finish(t, analysis);
  return tensors;
}

}  // namespace halfscope::analyzers::underflow
