// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_lines.hpp"

#include <utility>

#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/console/console_words.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

using common::can_be_scale;

/// Takes away what can be no loss scale, and keeps it to be told.
void check_scale(std::optional<double>& scale, std::optional<double>& odd) {
  if (!scale || (can_be_scale(*scale) && *scale != 0)) return;
  if (!odd) odd = scale;
  if (!can_be_scale(*scale)) scale.reset();
}

using frames::Tool;

/// A line of interest that has the mark is of that tool.
constexpr std::pair<std::string_view, Tool> kMarks[] = {
    {"deepspeed", Tool::deepspeed},
    {"skipped=", Tool::deepspeed},
    {"overflow on iteration", Tool::other},  // DeepSpeed's and Apex's
    {"number of skipped iterations", Tool::megatron},
    {"loss scaler ", Tool::apex},
    {"Using dynamic loss scale of", Tool::apex},
    {"num_updates", Tool::fairseq},
    {"Train Metrics (step ", Tool::fairseq2},
    {"verflow detected at step ", Tool::fairseq2},
    {"ignoring gradient", Tool::fairseq},
    {"optimizer not run", Tool::paddle},
    {"Found inf or nan, current scale", Tool::paddle},
    {"interval_runtime", Tool::paddle},
    {"overflow cond", Tool::mindspore},
    {"overflow, drop step", Tool::mindspore},
    {"Found overflow. Skip step", Tool::colossalai},
    {"Overflow occurs, the loss scale", Tool::colossalai},
    {"reduced_train_loss", Tool::nemo},
    {"'grad_norm': ", Tool::transformers},
    {"\"grad_norm\": ", Tool::transformers},
};

Tool tool_of(const Line& line) {
  for (const auto& [mark, tool] : kMarks) {
    if (line.find(mark) != std::string_view::npos) return tool;
  }
  return Tool::other;
}

}  // namespace

ConsoleLine console_line(std::string_view text, const lines::Pattern* pattern) {
  ConsoleLine found;
  if (pattern != nullptr) read_values(text, pattern->match(text), found);
  if (found.any()) {
    check_scale(found.scalars.loss_scale, found.odd_scale);
    return found;
  }
  const Line line(text);
  found.overflow = overflow_of(line);
  found.iteration = iteration_of(line);
  found.bar = bar_of(line);
  if (pattern == nullptr) read_pairs(line, found);
  found.applied = applied_of(line);
  found.at_minimum = ends_at_minimum(line);
  if (found.overflow) found.hysteresis = count_after(line, "hysteresis is ");
  if (found.overflow) check_scale(found.overflow->next, found.odd_scale);
  if (found.overflow) check_scale(found.overflow->attempted, found.odd_scale);
  if (found.applied) check_scale(found.applied->next, found.odd_scale);
  check_scale(found.scalars.loss_scale, found.odd_scale);
  if (found.any()) found.tool = tool_of(line);
  return found;
}

}  // namespace halfscope::analyzers::readers::console
