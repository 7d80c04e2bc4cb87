// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/clipped.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <nlohmann/json.hpp>

#include "analyzers/underflow/step_facts.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {
namespace {

/// One recorded step: sums over all weight gradients.
struct Step {
  double squares = 0, largest = 0;
  std::uint64_t values = 0;
  bool known = true;
};

/// Returns the steps that have all of the log's weight gradients, all finite.
std::vector<Step> whole_steps(const LogFindings& log) {
  std::map<std::int64_t, Step> steps;
  for (const TensorFindings& t : log.tensors) {
    if (t.role != log::Role::weight_grad) continue;
    for (const StepFindings& found : t.per_step) {
      Step& step = steps[found.step];
      step.known = step.known && found.moments && !nonfinite(found);
      if (!step.known) continue;
      step.squares += found.moments->sum_squares / found.scale / found.scale;
      step.largest = std::max(step.largest, found.max_abs.value_or(0));
      step.values += found.counts.total;
    }
  }
  std::uint64_t most = 0;
  for (const auto& [number, step] : steps) most = std::max(most, step.values);
  std::vector<Step> whole;
  for (const auto& [number, step] : steps) {
    if (step.known && step.values == most) whole.push_back(step);
  }
  return whole;
}

/// Returns true if at some step the recorder read gradients when the optimizer's step was
/// attempted, as it does for gradients that no backward pass put in place.
bool read_at_step(const LogFindings& log) {
  return std::ranges::any_of(log.scalars, [](const log::StepScalars& step) {
    return step.more.contains("gradients_read_at_step");
  });
}

/// Returns true if the recorder knew that the loop clips gradients and read them after clipping.
/// Earlier recorders read all gradients there and say so in the words of kEarlier.
bool says_clipped(const LogFindings& log) {
  constexpr const char* kEarlier =
      "read when the optimizer's step is attempted, before a skip is decided";
  if (!log.manifest) return false;
  const auto recorder = log.manifest->about->find("recorder");
  if (recorder == log.manifest->about->end() || !recorder->is_object()) return false;
  const auto clipping = recorder->find("clipping");
  if (clipping == recorder->end() || clipping->is_null()) return false;
  return recorder->value("gradients", nlohmann::json()) == kEarlier || read_at_step(log);
}

constexpr std::uint64_t kLeast = 3, kOneOf = 4;  // at least 3 steps, and 1 of 4, reach the bound

/// Returns true if the numbers differ by more than `part` of the largest. Steps that are all alike
/// prove nothing.
bool differ(const std::vector<double>& numbers, double part) {
  const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
  return low != numbers.end() && *low < *high * (1 - part);
}

/// Returns true if many steps reach the maximum of `bound` (up to `within`) and `other` differs.
bool is_bounded(const std::vector<Step>& steps, double Step::*bound, double within,
                double Step::*other, double apart) {
  double largest = 0;
  for (const Step& step : steps) largest = std::max(largest, step.*bound);
  std::vector<double> at_bound;
  for (const Step& step : steps) {
    if (step.*bound >= largest * (1 - within)) at_bound.push_back(step.*other);
  }
  const bool many = at_bound.size() >= kLeast && at_bound.size() * kOneOf >= steps.size();
  return largest > 0 && many && differ(at_bound, apart);
}

/// clip_grad_norm_ divides by the norm plus 1e-6 and rounds, so clipped norms are equal within 0.1
/// % and their squares within 0.2 %. clip_grad_value_ results in one largest number; if it clips
/// nearly all values, the squares are nearly equal too, so more than rounding must differ.
bool by_values(const std::vector<Step>& steps) {
  return is_bounded(steps, &Step::squares, 0.002, &Step::largest, 0.01) ||
         is_bounded(steps, &Step::largest, 0, &Step::squares, 1e-6);
}

}  // namespace

bool is_clipped(const LogFindings& log) { return by_values(whole_steps(log)) || says_clipped(log); }

bool misses_gradients(const log::StepScalars& step) {
  const auto found = step.more.find("gradients_missing");
  return found != step.more.end() && found->second > 0;
}

std::size_t incomplete_steps(const Analysis& analysis) {
  std::size_t steps = 0;
  for (const LogFindings& log : analysis.logs) {
    steps += static_cast<std::size_t>(std::ranges::count_if(log.scalars, misses_gradients));
  }
  return steps;
}

}  // namespace halfscope::analyzers::underflow
