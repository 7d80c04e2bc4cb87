// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/peaks_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "reports/answer/formats.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {
namespace {

using analyzers::underflow::Answer;
using analyzers::underflow::TensorPeaks;

/// Returns a rank: 0 for NaN or infinities, then overflow, values flushed to zero, and the rest.
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

/// For example "0.9999 to 1" or "at most 5e-05". Empty if no value is finite.
std::string largest_text(const TensorPeaks& t) {
  if (!t.max_abs) return "";
  const std::string most = fmt::format("{:.4g}", *t.max_abs);
  if (!t.max_abs_at_least) return most;
  if (*t.max_abs_at_least <= 0) return "at most " + most;
  const std::string least = fmt::format("{:.4g}", *t.max_abs_at_least);
  return least == most ? most : least + " to " + most;
}

/// Returns the effect of the target format on the tensor's values.
std::string verdict_of(const TensorPeaks& t) {
  if (!t.nan_steps.empty()) return "NaN at " + steps_text(t.nan_steps);
  if (!t.inf_steps.empty()) return "infinity at " + steps_text(t.inf_steps);
  if (t.overflows == Answer::yes) return "overflows";
  if (t.overflows == Answer::perhaps) return "may overflow";
  if (t.all_flushed == Answer::yes) return "all values become zero";
  if (t.all_flushed == Answer::perhaps) return "perhaps all values become zero";
  return t.flushes == Answer::no ? "no value becomes zero" : "small values are unknown";
}

std::string title_of(const std::vector<TensorPeaks>& tensors,
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

Row row_of(const TensorPeaks& t, std::size_t rank) {
  const Cell at = t.max_abs ? Cell{std::to_string(t.max_step), static_cast<double>(t.max_step)}
                            : Cell{"", -1, "", true};
  const Cell smallest = t.min_abs_nonzero
                            ? Cell{fmt::format("{:.4g}", *t.min_abs_nonzero), *t.min_abs_nonzero}
                            : Cell{"unknown", -1, "", true};
  return {{{code(t.name)},
           {std::string(name_of(t.role))},
           {largest_text(t), t.max_abs.value_or(-1)},
           at,
           smallest,
           {verdict_of(t), static_cast<double>(rank)}}};
}

}  // namespace

std::vector<TensorPeaks> peaks_by_harm(std::vector<TensorPeaks> tensors) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorPeaks& a, const TensorPeaks& b) {
    if (harm_of(a) != harm_of(b)) return harm_of(a) < harm_of(b);
    return a.max_abs.value_or(0) > b.max_abs.value_or(0);
  });
  return tensors;
}

Table peaks_table(const analyzers::Findings& found) {
  Table table;
  const std::vector<TensorPeaks> order = peaks_by_harm(found.peaks);
  if (order.empty()) return table;
  table.title = title_of(order, found.analysis);
  table.headings = {"tensor",
                    "role",
                    "largest magnitude",
                    "at step",
                    "smallest is at least",
                    "in " + people_say(found.analysis.target.name)};
  table.left_out = order.size() - std::min(order.size(), kMostRows);
  for (std::size_t i = 0; i < order.size() - table.left_out; ++i) {
    table.rows.push_back(row_of(order[i], i));
  }
  return table;
}

}  // namespace halfscope::reports::answer
