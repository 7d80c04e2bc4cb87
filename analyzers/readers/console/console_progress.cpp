// SPDX-License-Identifier: Apache-2.0
// Progress bars and the scalars of lines, and where they come from:
// * "steps: 10 loss: 1.2 iter time (s): 0.1 samples/sec: 10.0": DeepSpeed's pipeline engine, which
//   prints it besides the counters, and may do so later: scalars of a step, no progress.
// * "  0%|    | 98/24128 [00:40<2:40:10, 2.50it/s, loss=1.2]": tqdm, with fields that the program
//   adds, such as NeMo's reduced_train_loss and global_step.
// * "{'loss': 1.2, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.1}" and "{'eval_loss': 1.2,
//   ..}": Hugging Face Trainer; numbers may be strings. 'global_step/max_steps': '10/400' in
//   ms-swift's.
// * "Epoch 1, validation: loss=1.2, over ..": icefall, " validation loss at iteration 200 | lm loss
//   value: 1.2 |": Megatron-LM, "validation results at iteration 200 | lm_loss value: 1.2":
//   GPT-NeoX, "valid on 'valid' subset | loss 1.2 |" and "{"valid_loss": "1.2", ..}": fairseq,
//   "Validation Metrics (step 200) - Loss: 1.2": fairseq2, "eval_loss: 1.2, .., eval_runtime: 1":
//   PaddleNLP, and "val_loss: 1.2" in NeMo's lines of training: evaluations.
// Lines that tell steps (console_periodic.cpp) have their scalars by the same names.
#include <algorithm>
#include <array>

#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/console/console_words.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

/// The names that programs give a scalar; the first one that a line has holds.
struct Name {
  std::string_view name;
  std::optional<double> LineScalars::*scalar;
};
constexpr Name kNames[] = {{"lm loss", &LineScalars::loss},
                           {"lm_loss", &LineScalars::loss},
                           {"reduced_train_loss", &LineScalars::loss},
                           {"train_loss", &LineScalars::loss},
                           {"loss", &LineScalars::loss},
                           {"Loss", &LineScalars::loss},
                           {"learning rate", &LineScalars::learning_rate},
                           {"learning_rate", &LineScalars::learning_rate},
                           {"lr", &LineScalars::learning_rate},
                           {"LearningRate", &LineScalars::learning_rate},
                           {"Learning Rate", &LineScalars::learning_rate},
                           {"cur_lr", &LineScalars::learning_rate},
                           {"grad norm", &LineScalars::gradient_norm},
                           {"grad_norm", &LineScalars::gradient_norm},
                           {"gnorm", &LineScalars::gradient_norm},
                           {"Gradient Norm", &LineScalars::gradient_norm},
                           {"global_norm", &LineScalars::gradient_norm},
                           {"loss scale", &LineScalars::loss_scale},
                           {"loss_scale", &LineScalars::loss_scale},
                           {"train_loss_scale", &LineScalars::loss_scale},
                           {"Grad Scale", &LineScalars::loss_scale},
                           {"Loss Scale", &LineScalars::loss_scale},
                           {"grad_scale", &LineScalars::loss_scale}};

/// A bar over validation has a validation's loss.
bool is_validation(const Line& line) {
  constexpr std::array<std::string_view, 6> kWords = {"alid", "Eval", "eval",
                                                      "Test", "test", "Sanity"};
  const std::string_view begin = line.substr(0, line.find("%|"));
  return std::ranges::any_of(kWords, [&](std::string_view word) { return has(begin, word); });
}

std::optional<std::int64_t> pipeline_step(const Line& line) {
  return has(line, " iter time (s):") ? count_after(line, "steps:") : std::nullopt;
}

/// "{'loss': 1.2, ...": a Python dictionary; JSON has other quotes, and is another tool's.
bool is_dictionary(const Line& line) {
  return has(line, "{'loss': ") || (has(line, "{'") && has(line, "'grad_norm': "));
}

/// MindFormers' "overflow cond: True".
std::optional<bool> overflow_condition(const Line& line) {
  const auto condition = after(line, "overflow cond:");
  if (!condition) return std::nullopt;
  if (condition->starts_with("True")) return true;
  return condition->starts_with("False") ? std::optional(false) : std::nullopt;
}

/// A line of an evaluation: its loss is the field `name` from `mark` on.
struct Evaluation {
  std::string_view mark, name;
  std::string_view beside = {};  ///< what such a line has besides
};
constexpr Evaluation kEvaluations[] = {
    {"{'eval_loss': ", "eval_loss"},
    {"eval_loss: ", "eval_loss", "eval_runtime: "},
    {", validation: loss=", "loss", "Epoch "},
    {"' subset | loss ", "loss", "valid on '"},
    {"\"valid_loss\": ", "valid_loss", "\"valid_num_updates\""},
    {"validation loss at ", "lm loss value"},
    {"validation results at ", "lm_loss value"},
    {"Validation Metrics (step ", "Loss"},
};

std::optional<double> evaluation_loss(const Line& line) {
  for (const Evaluation& evaluation : kEvaluations) {
    const std::size_t at = line.find(evaluation.mark);
    if (at == std::string_view::npos || !has(line, evaluation.beside)) continue;
    if (const auto loss = field(line.substr(at), evaluation.name)) return loss;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Bar> bar_of(const Line& line) {
  const std::size_t percent = line.find("%|");
  if (percent == std::string_view::npos) return std::nullopt;
  const std::size_t end = line.find(" [", percent);
  const std::size_t begin = line.rfind('|', end);
  if (end == std::string_view::npos || begin <= percent) return std::nullopt;
  std::string_view counts = line.substr(begin + 1, end - begin - 1);
  counts.remove_prefix(std::min(counts.size(), counts.find_first_not_of(' ')));
  const std::size_t slash = counts.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto done = common::integer_in(counts.substr(0, slash)),
             total = common::integer_in(counts.substr(slash + 1));
  if (!done || !total || *done < 0 || *total > kMostSteps || *done > *total) return std::nullopt;
  return Bar{*done, *total, line.substr(0, percent)};
}

LineScalars scalars_of(const Line& line, bool tells_steps, bool has_bar) {
  LineScalars found;
  found.evaluation_loss = evaluation_loss(line);
  const bool of_training = has_bar && !is_validation(line);
  const auto of_pipeline = tells_steps ? std::nullopt : pipeline_step(line);
  const bool of_dictionary = is_dictionary(line);
  if (!tells_steps && !of_training && !of_pipeline && !of_dictionary) return found;
  for (const Name& name : kNames) {
    if (!(found.*name.scalar)) found.*name.scalar = field(line, name.name);
  }
  // Lightning and NeMo repeat the last evaluation's among the training's.
  if (found.any() && !found.evaluation_loss) found.evaluation_loss = field(line, "val_loss");
  found.nan_iterations = count_after(line, "number of nan iterations:");
  if (of_training && !tells_steps) found.step = count_field(line, "global_step");
  if (of_dictionary) found.step = count_after(line, "'global_step/max_steps': '");
  if (of_pipeline) found.step = of_pipeline;
  if (tells_steps) found.found_inf = overflow_condition(line);
  return found;
}

}  // namespace halfscope::analyzers::readers::console
