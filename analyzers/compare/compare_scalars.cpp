// SPDX-License-Identifier: Apache-2.0
// Compares the scalars of two runs: losses, loss scales, skipped steps, first differences.
#include <algorithm>
#include <cmath>
#include <map>

#include "analyzers/compare/compare.hpp"

namespace halfscope::analyzers::compare {
namespace {

using Series = std::vector<std::pair<std::int64_t, double>>;

std::vector<CommonScalar> common(const Series& a, const Series& b) {
  const std::map<std::int64_t, double> of_a(a.begin(), a.end());
  std::vector<CommonScalar> out;
  for (const auto& [step, value] : b) {
    const auto found = of_a.find(step);
    if (found != of_a.end()) out.push_back({step, found->second, value});
  }
  return out;
}

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

bool far(double a, double b) {
  if (same(a, b)) return false;
  if (!std::isfinite(a) || !std::isfinite(b)) return true;
  return std::abs(a - b) > kFarLosses * std::max(std::abs(a), std::abs(b));
}

void set_losses(Comparison& c) {
  const std::vector<CommonScalar> losses = common(c.runs.a.loss, c.runs.b.loss);
  FirstDifferences& parting = c.parting;
  parting.losses = losses.size();
  for (const CommonScalar& at : losses) {
    if (!same(at.a, at.b) && !parting.first_other) parting.first_other = at.step;
    if (!parting.first_other) parting.same_until = at.step;
    if (far(at.a, at.b) && !parting.first_far) parting.first_far = at.step;
  }
  if (losses.empty()) return;
  c.last_loss = losses.back();
  parting.far_at_first = parting.first_far == losses.front().step;
}

}  // namespace

void add_scalars(RunTotals& run, const underflow::LogFindings& log) {
  for (const log::StepScalars& scalars : log.scalars) {
    ++run.steps;
    if (scalars.loss) {
      run.loss.emplace_back(scalars.step, *scalars.loss);
      if (!std::isfinite(*scalars.loss) && !run.loss_non_finite) {
        run.loss_non_finite = scalars.step;
      }
    }
    if (scalars.loss_scale) run.scales.emplace_back(scalars.step, *scalars.loss_scale);
    if (scalars.found_inf.value_or(false)) run.skipped.push_back(scalars.step);
  }
}

void set_parting(Comparison& c) {
  set_losses(c);
  const std::vector<CommonScalar> scales = common(c.runs.a.scales, c.runs.b.scales);
  const auto other = std::find_if(scales.begin(), scales.end(),
                                  [](const CommonScalar& at) { return !same(at.a, at.b); });
  if (other == scales.end()) return;
  c.parting.first_other_scale = other->step;
  c.parting.other_scale_at_first = other == scales.begin();
}

}  // namespace halfscope::analyzers::compare
