// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_lines.hpp"

#include <utility>

#include "analyzers/readers/common/timeline.hpp"
#include "analyzers/readers/console/console_words.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

using common::can_be_scale;

/// Clears `scale` if it is no loss scale. Copies such a number, or 0, to `odd` if `odd` is empty.
void check_scale(std::optional<double>& scale, std::optional<double>& odd) {
  if (!scale || (can_be_scale(*scale) && *scale != 0)) return;
  if (!odd) odd = scale;
  if (!can_be_scale(*scale)) scale.reset();
}

using frames::Tool;

/// Texts by which the tool of a line is known. The first text that the line has decides.
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
    if (has(line, mark)) return tool;
  }
  return Tool::other;
}

bool is_dictionary(const Line& line) {
  const std::size_t open = std::string_view(line).find('{');
  if (open == std::string_view::npos || open + 1 == line.size()) return false;
  const char quote = line[open + 1];
  if (quote != '\'' && quote != '"') return false;
  const auto has_name = [&](std::string_view name) {
    const std::size_t at = line.find(name, open);
    return at != std::string_view::npos && line[at - 1] == quote &&
           at + name.size() < line.size() && line[at + name.size()] == quote;
  };
  return has_name("grad_norm") || (line.find("loss") == open + 2 && has_name("loss"));
}

/// Sets the results of messages of skipped steps.
void read_messages(const Line& line, ConsoleLine& found) {
  found.overflow = overflow_of(line);
  found.iteration = iteration_of(line);
  found.applied = applied_of(line);
  found.at_minimum = ends_at_minimum(line);
  if (found.overflow) {
    found.hysteresis = count_after(line, "hysteresis is ");
    check_scale(found.overflow->next, found.odd_scale);
    check_scale(found.overflow->attempted, found.odd_scale);
  }
  if (found.applied) check_scale(found.applied->next, found.odd_scale);
}

}  // namespace

LineWords::LineWords(const Line& line)
    : tool(tool_of(line)),
      message(has_message_words(line)),
      bar(has(line, "%|")),
      dictionary(is_dictionary(line)),
      wandb(has(line, "\"_step\"")),
      pipeline(has(line, " iter time (s):")),
      run_ends(has(line, "train_runtime")),
      fairseq2(has(line, "Train Metrics (step ")),
      batches(has(line, "global_batch_idx")) {}

ConsoleLine LineReader::read(std::string_view line) {
  ConsoleLine found;
  if (pattern_ != nullptr) read_values(line, pattern_->match(line), found);
  if (!found.any()) {
    forms_.read(line);
    LineWords& words = words_[forms_.place()];
    if (forms_.is_new()) words = LineWords(line);
    if (words.message) read_messages(line, found);
    if (words.bar) found.bar = bar_of(line);
    if (pattern_ == nullptr) read_pairs(line, forms_.pairs(), words, found);
    if (found.any()) found.tool = words.tool;
  }
  check_scale(found.scalars.loss_scale, found.odd_scale);
  return found;
}

}  // namespace halfscope::analyzers::readers::console
