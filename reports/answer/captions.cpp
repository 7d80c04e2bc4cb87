// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/captions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "reports/answer/text.hpp"
#include "reports/answer/updates.hpp"

namespace halfscope::reports::answer {

using analyzers::underflow::Analysis;
using analyzers::underflow::TensorFindings;

Caption update_map_caption(const analyzers::underflow::Target& target, bool left_out) {
  return {
      "By magnitude of weight and update",
      fmt::format("Each cell is coloured by the share lost, and is faint where updates are "
                  "few.{}",
                  left_out ? " Updates of weights that are zero or far out are not drawn." : ""),
      {{"advised", fmt::format("below this line an update is {}", rule_of_thumb(target))},
       {"now", "at and below this line an update is zero"}}};
}

Caption update_ratios_caption(int first) {
  return {"Size beside the weight",
          fmt::format("The lost part is coloured. Updates below 2^{} are not drawn.", first)};
}

Caption outcomes_caption(std::size_t drawn) {
  return {"Outcome of updates, by weight",
          fmt::format("Largest share lost first, {} weights at most.", drawn)};
}

Caption timeline_caption(const analyzers::Findings& found) {
  const bool marks = std::ranges::any_of(found.analysis.logs, [](const auto& log) {
    return std::ranges::any_of(log.scalars, [](const log::StepScalars& scalars) {
      return scalars.found_inf.value_or(false);
    });
  });
  return {"Loss scale of the run",
          marks ? "Triangles are skipped steps whose number is known." : ""};
}

Caption quantised_caption(const std::string& tensors) {
  return {"Underflow of " + tensors + ", by layer and step",
          "Each cell has the largest share of its steps, in percent of all elements. Layers are in "
          "the order of the log."};
}

std::string quiet_text(const std::vector<std::string>& tensors) {
  return fmt::format("Below {:g} % at every step, and not drawn: {}.",
                     100 * analyzers::formats::kUnderflowLimits.front(),
                     listed(tensors, tensors.size()));
}

std::string window_note(const analyzers::recommend::Recommendation& advice) {
  if (!advice.lowest_log2 || !advice.highest_log2 || *advice.lowest_log2 > *advice.highest_log2) {
    return "";
  }
  return fmt::format(
      "Shaded: scales that keep zeros below the target in every tensor and the headroom free, {} "
      "to {}.",
      power_text(*advice.lowest_log2), power_text(*advice.highest_log2));
}

std::string not_drawn_text(const Interval& values, std::string_view side, int exponent) {
  if (values.high == 0) return "";
  return fmt::format(" Not drawn: {} {} {} 2^{}.", count_text(values),
                     values.high == 1 ? "value" : "values", side, exponent);
}

bool bounded(const analyzers::underflow::Analysis& analysis) {
  return std::ranges::any_of(analysis.tensors(), [](const auto& tensor) {
    return std::ranges::any_of(tensor.binades, [](const auto& b) { return !b.count.exact(); });
  });
}

std::string curves_hint(bool bounded) {
  return bounded ? "Bands lie between bounds. Point at a scale for counts."
                 : "Point at a scale for exact counts.";
}

std::string histogram_text(const Tensors& tensors, const Series& sum, bool a_binade_each) {
  std::set<log::Role> roles;
  for (const TensorFindings* tensor : tensors) roles.insert(tensor->role);
  std::vector<std::string_view> names;
  for (const log::Role role : roles) names.push_back(log::name_of(role));
  const Interval of = sum.counts.finite_nonzero;
  return fmt::format("Unscaled magnitudes of {} finite nonzero {}: {} ({}, {}).{}", count_text(of),
                     of == 1 ? "value" : "values", fmt::join(names, ", "),
                     plural(sum.tensors, "tensor"), plural(sum.recorded_steps, "step"),
                     a_binade_each ? " The bar at 2^e holds 2^e up to 2^(e+1)." : "");
}

std::string hidden_zeros_text(const Tensors& tensors, const Series& sum) {
  const bool hidden = std::ranges::any_of(
      tensors, [](const TensorFindings* t) { return !t->underflow_identifiable; });
  if (!hidden || sum.counts.zero.high == 0) return "";
  return fmt::format("Not drawn: {} recorded as zero; some may be values that were flushed.",
                     count_text(sum.counts.zero));
}

std::string text_bars_text(const Analysis& analysis, const TextBars& bars) {
  std::string out = fmt::format("At the right: limits of {} at loss scale {}. ",
                                analysis.target.name, scale_text(analysis.loss_scale));
  out += bars.least == 0 ? "Bars are linear."
                         : fmt::format("Bars are logarithmic: one # is {} or fewer.",
                                       plural(bars.least, "value"));
  return bars.bounded ? out + " The log gives bounds: # at least, - at most." : out;
}

}  // namespace halfscope::reports::answer
