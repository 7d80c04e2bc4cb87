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
    if (found.largest) {
      const double held = scalars_.in_fp16(t.role, found.step, *found.max_abs);
      const bool whole = held == *found.max_abs;
      add_finite(found.step, whole ? *found.largest : magnitude_of(held), whole ? found.scale : 1);
    }
    // Infinities that the log left out may have been there.
    const log::StepScalars* told = scalars_.at(found.step);
    const bool sound = told != nullptr && told->found_inf == false;
    if (!found.counts.nonfinite_known && !sound) steps_[found.step].censored = true;
    if (!underflow::nonfinite(found)) return;
    const bool by_scale = basis_.overflow.bounds(t, found);
    add_nonfinite(found.step, by_scale
                                  ? underflow::computed_scale(
                                        t, found, scalars_, underflow::WithoutScalars::as_recorded)
                                  : std::nullopt);
  }

  void add(const frames::StepPeak& peak) {
    if (std::isfinite(peak.max_abs)) {
      if (peak.max_abs > 0) add_finite(peak.step, magnitude_of(peak.max_abs), 1.0);
      return;
    }
    const bool in_fp16 = in_fp16_.contains(peak.role);
    const bool by_scale = basis_.overflow.bounds(log_.name, peak.role, peak.step, in_fp16);
    add_nonfinite(peak.step, by_scale ? scalars_.loss_scale(peak.step) : std::nullopt);
  }

  void add_finite(std::int64_t number, Magnitude recorded, double scale) {
    Step& step = steps_[number];
    step.log2_max = std::max(step.log2_max, std::log2(to_double(recorded)) - std::log2(scale));
    step.highest_log2 =
        std::min(step.highest_log2,
                 underflow::highest_safe_log2(recorded, scale, basis_.analysis.target.format));
  }

  /// computed_at: the loss scale of values computed in binary16, of which an infinity is one of
  /// 65520 or more. Without it, the infinity was there before rounding.
  void add_nonfinite(std::int64_t number, std::optional<double> computed_at) {
    if (computed_at) {
      add_finite(number, underflow::infinity_magnitude(), *computed_at);
      steps_[number].censored = true;
      return;
    }
    steps_[number].broken = true;
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
