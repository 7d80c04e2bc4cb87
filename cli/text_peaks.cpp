// SPDX-License-Identifier: Apache-2.0
#include "cli/text_peaks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <vector>

#include "analyzers/tensor_peaks.hpp"
#include "reports/text.hpp"

namespace halfscope::cli {
namespace {

using analyzers::Answer;
using analyzers::TensorPeaks;

constexpr std::size_t kShown = 20;
constexpr std::size_t kWidestName = 48;

/// NaN and infinity, then overflow, then what is flushed, then the rest.
int harm_of(const TensorPeaks& t) {
  if (!t.nan_steps.empty() || !t.inf_steps.empty()) return 0;
  if (t.overflows != Answer::no) return t.overflows == Answer::yes ? 1 : 2;
  if (t.all_flushed != Answer::no) return t.all_flushed == Answer::yes ? 3 : 4;
  return 5;
}

std::string largest_text(const TensorPeaks& t) {
  if (!t.max_abs) return "";
  const std::string most = fmt::format("{:.4g}", *t.max_abs);
  if (!t.max_abs_at_least) return most;
  if (*t.max_abs_at_least <= 0) return "at most " + most;
  const std::string least = fmt::format("{:.4g}", *t.max_abs_at_least);
  return least == most ? most : least + " to " + most;
}

std::string steps_text(const std::vector<std::int64_t>& steps) {
  return steps.size() == 1 ? fmt::format("step {}", steps.front())
                           : fmt::format("{} steps, first {}", steps.size(), steps.front());
}

/// What the target format makes of it.
std::string verdict(const TensorPeaks& t) {
  if (!t.nan_steps.empty()) return "NaN at " + steps_text(t.nan_steps);
  if (!t.inf_steps.empty()) return "infinity at " + steps_text(t.inf_steps);
  if (t.overflows == Answer::yes) return "overflows";
  if (t.overflows == Answer::perhaps) return "may overflow";
  if (t.all_flushed == Answer::yes) return "all values become zero";
  if (t.all_flushed == Answer::perhaps) return "perhaps all values become zero";
  return t.flushes == Answer::no ? "no value becomes zero" : "small values are not known";
}

std::string shortened(const std::string& name) {
  const std::string shown = log::printable(name);
  return shown.size() <= kWidestName ? shown
                                     : "..." + shown.substr(shown.size() - (kWidestName - 3));
}

std::string table_text(const std::vector<TensorPeaks>& order, std::string_view format) {
  const std::size_t shown = std::min(kShown, order.size());
  std::vector<std::array<std::string, 4>> rows = {
      {"tensor", "largest magnitude", "at step", fmt::format("in {}", format)}};
  for (std::size_t i = 0; i < shown; ++i) {
    const TensorPeaks& t = order[i];
    rows.push_back({shortened(t.name), largest_text(t), t.max_abs ? std::to_string(t.max_step) : "",
                    verdict(t)});
  }
  std::array<std::size_t, 3> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    text += fmt::format("  {:<{}}  {:>{}}  {:>{}}  {}\n", row[0], widths[0], row[1], widths[1],
                        row[2], widths[2], row[3]);
  }
  if (order.size() > shown) {
    text += fmt::format("  and {} more; --json has all, step by step\n", order.size() - shown);
  }
  return text;
}

}  // namespace

std::string peaks_text(const analyzers::Analysis& analysis) {
  std::vector<TensorPeaks> order = tensor_peaks(analysis);
  if (order.empty()) return "";
  std::set<std::int64_t> steps;
  for (const TensorPeaks& t : order) {
    for (const analyzers::StepPeak& peak : t.steps) steps.insert(peak.step);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    if (harm_of(a) != harm_of(b)) return harm_of(a) < harm_of(b);
    return a.max_abs.value_or(0) > b.max_abs.value_or(0);
  });
  const bool gradients = std::any_of(order.begin(), order.end(), [](const TensorPeaks& t) {
    return t.role == log::Role::weight_grad || t.role == log::Role::activation_grad;
  });
  return fmt::format("Largest magnitudes of {} at {}, without counts{}:\n",
                     reports::plural(order.size(), "tensor"), reports::plural(steps.size(), "step"),
                     gradients ? fmt::format("; gradients at loss scale {}",
                                             reports::scale_text(analysis.loss_scale))
                               : "") +
         table_text(order, analysis.target.name);
}

}  // namespace halfscope::cli
