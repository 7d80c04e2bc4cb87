// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/captions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reports/answer/overflow_section.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/what_if_table.hpp"

namespace halfscope::reports::answer {

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

Caption update_errors_caption() {
  return {"Error of what is applied", "The change of the weight, against the change asked for."};
}

Caption outcomes_caption(std::size_t drawn) {
  return {"Outcome of updates, by weight",
          fmt::format("Largest share lost first, {} weights at most.", drawn)};
}

Caption headroom_caption(const analyzers::Study& study) {
  std::string note =
      fmt::format("Binades between the largest magnitude and overflow, of gradients at {}.",
                  headroom_scale_text(study));
  if (const std::string of_all = least_of_all_steps(study); !of_all.empty()) {
    note +=
        fmt::format(" Over the steps with histograms; of all steps, step {} leaves the least: {}.",
                    study.advice.limited_by->step, of_all);
  }
  return {"Headroom below overflow", note};
}

Caption headroom_steps_caption() {
  return {"Over the steps",
          "The tensors with the least headroom. Growth is the trend over the recorded steps."};
}

Caption policy_scales_caption() {
  return {"Loss scale over the steps",
          "Each line is a policy, or several that did the same. Marks are steps it would have "
          "skipped. Point at one for exact numbers."};
}

Caption policy_flushed_caption() {
  return {"Gradients flushed to zero under each policy",
          "Mean over the steps with histograms, least first: solid is surely flushed, paler and "
          "dashed may be. The dot is the worst step, at most."};
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

Caption fits_caption() {
  return {
      "Narrowest format, tensors of each role",
      "Each colour is a format. Point at a bar to see how many tensors need a scale of their own."};
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

Caption bounds_caption() {
  return {"",
          "Solid bars and cells are surely there. Counts that may lie there, in a magnitude beside "
          "it or at zero are",
          {{"perhaps", "paler and dashed"}}};
}

std::string curves_hint(bool bounded) {
  return bounded ? "Bands lie between bounds. Point at a scale for counts."
                 : "Point at a scale for exact counts.";
}

}  // namespace halfscope::reports::answer
