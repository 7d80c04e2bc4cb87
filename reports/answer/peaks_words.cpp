// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/peaks_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {
namespace {

using analyzers::underflow::Answer;
using analyzers::underflow::TensorPeaks;

/// NaN and infinity, then overflow, then what is flushed, then the rest.
int harm_of(const TensorPeaks& t) {
  if (!t.nan_steps.empty() || !t.inf_steps.empty()) return 0;
  if (t.overflows != Answer::no) return t.overflows == Answer::yes ? 1 : 2;
  if (t.all_flushed != Answer::no) return t.all_flushed == Answer::yes ? 3 : 4;
  return 5;
}

std::string steps_text(const std::vector<std::int64_t>& steps) {
  return steps.size() == 1 ? fmt::format("step {}", steps.front())
                           : fmt::format("{} steps, first {}", steps.size(), steps.front());
}

}  // namespace

std::vector<TensorPeaks> peaks_by_harm(std::vector<TensorPeaks> tensors) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorPeaks& a, const TensorPeaks& b) {
    if (harm_of(a) != harm_of(b)) return harm_of(a) < harm_of(b);
    return a.max_abs.value_or(0) > b.max_abs.value_or(0);
  });
  return tensors;
}

std::string largest_text(const TensorPeaks& t) {
  if (!t.max_abs) return "";
  const std::string most = fmt::format("{:.4g}", *t.max_abs);
  if (!t.max_abs_at_least) return most;
  if (*t.max_abs_at_least <= 0) return "at most " + most;
  const std::string least = fmt::format("{:.4g}", *t.max_abs_at_least);
  return least == most ? most : least + " to " + most;
}

std::string peaks_verdict(const TensorPeaks& t) {
  if (!t.nan_steps.empty()) return "NaN at " + steps_text(t.nan_steps);
  if (!t.inf_steps.empty()) return "infinity at " + steps_text(t.inf_steps);
  if (t.overflows == Answer::yes) return "overflows";
  if (t.overflows == Answer::perhaps) return "may overflow";
  if (t.all_flushed == Answer::yes) return "all values become zero";
  if (t.all_flushed == Answer::perhaps) return "perhaps all values become zero";
  return t.flushes == Answer::no ? "no value becomes zero" : "small values are unknown";
}

std::string peaks_title(const std::vector<TensorPeaks>& tensors,
                        const analyzers::underflow::Analysis& analysis) {
  std::set<std::int64_t> steps;
  bool gradients = false;
  for (const TensorPeaks& t : tensors) {
    for (const analyzers::frames::StepPeak& peak : t.steps) steps.insert(peak.step);
    gradients |= is_gradient(t.role);
  }
  return fmt::format(
      "Largest magnitudes of {} at {}, without counts{}", plural(tensors.size(), "tensor"),
      plural(steps.size(), "step"),
      gradients ? "; gradients at loss scale " + scale_text(analysis.loss_scale) : "");
}

}  // namespace halfscope::reports::answer
