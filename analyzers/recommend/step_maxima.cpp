// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/step_maxima.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers::recommend {

namespace {

/// What is known of one step.
struct Step {
  double log2_max = -INFINITY;
  bool censored = false;
  bool broken = false;  ///< infinity or NaN before any rounding to the format
  int highest_log2 = std::numeric_limits<int>::max();
};

/// Collects the steps of one log.
class Collector {
 public:
  Collector(const Basis& basis, const underflow::LogFindings& log)
      : basis_(basis), log_(log), scalars_(log) {
    for (const underflow::TensorFindings& t : log.tensors) {
      if (!t.counted) continue;
      if (t.computed_in_fp16()) in_fp16_.insert(t.role);
      any_ = true;
      for (const underflow::StepFindings& step : t.per_step) add(t, step);
    }
    if (!any_) return;
    for (const frames::StepPeak& peak : log.peaks) add(peak);
  }

  LogMaxima maxima() const {
    LogMaxima all;
    all.log = log_.name;
    for (const auto& [number, step] : steps_) {
      if (step.broken) {
        all.left_out.push_back(number);
        continue;
      }
      all.steps.push_back({number, step.log2_max, step.censored || log_.clipped});
      all.highest_log2.push_back(step.highest_log2);
    }
    return all;
  }

 private:
  void add(const underflow::TensorFindings& t, const underflow::StepFindings& found) {
    if (const auto largest = underflow::finite_magnitude(found)) {
      const double held = scalars_.in_fp16(t.role, found.step, *found.max_abs);
      const bool whole = held == *found.max_abs;
      add(found.step, whole ? *largest : underflow::StepMagnitude{magnitude_of(held)});
    }
    // Infinities that the log left out may have been there.
    const log::StepScalars* told = scalars_.at(found.step);
    const bool sound = told != nullptr && told->found_inf == false;
    if (!found.counts.nonfinite_known && !sound) steps_[found.step].censored = true;
    if (!underflow::nonfinite(found)) return;
    const bool by_scale = basis_.overflow.bounds(t, found);
    add_nonfinite(found.step, by_scale ? underflow::infinite_magnitude(t, found, scalars_)
                                       : std::optional<underflow::StepMagnitude>());
  }

  void add(const frames::StepPeak& peak) {
    if (std::isfinite(peak.max_abs)) {
      if (peak.max_abs > 0) add(peak.step, {magnitude_of(peak.max_abs)});
      return;
    }
    const bool in_fp16 = in_fp16_.contains(peak.role);
    const bool by_scale = basis_.overflow.bounds(log_.name, peak.role, peak.step, in_fp16);
    const auto scale = by_scale ? scalars_.loss_scale(peak.step) : std::nullopt;
    add_nonfinite(peak.step, scale ? std::optional(underflow::infinite_magnitude(*scale))
                                   : std::optional<underflow::StepMagnitude>());
  }

  void add(std::int64_t number, const underflow::StepMagnitude& magnitude) {
    Step& step = steps_[number];
    step.log2_max = std::max(step.log2_max, magnitude.log2());
    step.highest_log2 =
        std::min(step.highest_log2, magnitude.highest_safe_log2(basis_.analysis.target.format));
    step.censored = step.censored || magnitude.censored;
  }

  /// at_least: what an infinity stands for. Without it, it was there before any rounding.
  void add_nonfinite(std::int64_t number, const std::optional<underflow::StepMagnitude>& at_least) {
    if (at_least) {
      add(number, *at_least);
    } else {
      steps_[number].broken = true;
    }
  }

  const Basis& basis_;
  const underflow::LogFindings& log_;
  underflow::LogScalars scalars_;
  std::set<log::Role> in_fp16_;
  std::map<std::int64_t, Step> steps_;
  bool any_ = false;
};

}  // namespace

std::vector<LogMaxima> step_maxima(const Basis& basis) {
  std::vector<LogMaxima> all;
  for (const underflow::LogFindings& log : basis.analysis.logs) {
    LogMaxima maxima = Collector(basis, log).maxima();
    if (!maxima.steps.empty()) all.push_back(std::move(maxima));
  }
  return all;
}

double limit_log2(const underflow::Target& target, int k) {
  return std::log2(to_double(boundaries(target.format).overflow)) - k;
}

}  // namespace halfscope::analyzers::recommend
