// SPDX-License-Identifier: Apache-2.0
// Lines that tell how far a run has come, and where they come from:
// * "step=10, skipped=2, lr=[...], mom=[...]": DeepSpeed engine, _report_progress.
// * " iteration       10/     100 | ... | learning rate: 1.500E-04 | ... | lm loss: 1.0E+01 | loss
//   scale: 65536.0 | grad norm: 0.493 | number of skipped iterations:   1 | number of nan
//   iterations:   0 |": Megatron-LM training_log(); GPT-NeoX and Megatron-DeepSpeed print the same
//   names. The scale is asked for after the step.
// * "... loss=5.1, ..., num_updates=100, lr=0.001, gnorm=1.2, ..., loss_scale=64", the same with
//   "| num_updates 100 | lr 0.001 | ...", and as JSON: fairseq logging/progress_bar.py. num_updates
//   counts applied updates; the scale is the one after the step.
// * "loss: 1.2, learning_rate: 0.001, global_step: 10, ...": PaddleNLP's Trainer.
// * "steps: 10 loss: 1.2 iter time (s): 0.1 samples/sec: 10.0": DeepSpeed's pipeline engine, which
//   prints it besides the counters, and may do so later: scalars of a step, no progress.
// * "Training: .. Loss 10.2   LearningRate 0.1   Epoch: 0   Global Step: 100   Fp16 Grad Scale:
//   1024   Required: 10 hours": insightface.
// * ":::MLLOG {.., "value": {.., "loss_scale": 1024}, "metadata": {.., "step": 10}}": MLPerf's log.
// * "  0%|    | 98/24128 [00:40<2:40:10, 2.50it/s, loss=1.2]": tqdm, with fields that the program
//   adds, such as NeMo's reduced_train_loss and global_step.
// * "{'loss': 1.2, 'grad_norm': nan, 'learning_rate': 1e-05, 'epoch': 0.1}" and "{'eval_loss': 1.2,
//   ..}": Hugging Face Trainer.
#include <algorithm>
#include <array>

#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/console/console_words.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

constexpr std::string_view kSkipped = "number of skipped iterations:";

bool has(std::string_view line, std::string_view mark) {
  return line.find(mark) != std::string_view::npos;
}

std::optional<Periodic> deepspeed_progress(std::string_view line) {
  const std::size_t at = line.find("step=");
  if (at == std::string_view::npos) return std::nullopt;
  // mpirun's "[1,0]<stdout>:step=10".
  const bool word = at == 0 || std::string_view(" ]:").find(line[at - 1]) != std::string_view::npos;
  const auto steps = count_after(line, "step=");
  const auto skipped = count_after(line, ", skipped=");
  if (!word || !steps || !skipped) return std::nullopt;
  return Periodic{*steps, false, skipped, false};
}

/// Also of a line that is cut off behind its loss scale, as the last one of a run that was killed.
std::optional<Periodic> megatron_progress(std::string_view line) {
  constexpr std::string_view kIteration = "iteration ";
  const std::size_t at = line.find(kIteration);
  if (at == std::string_view::npos ||
      (at > 0 && std::isalpha(static_cast<unsigned char>(line[at - 1])))) {
    return std::nullopt;
  }
  const std::string_view rest = line.substr(at);
  const auto steps = count_after(rest, kIteration);
  const std::size_t bar = std::min(rest.find('|'), rest.size());
  const bool of_all = has(rest.substr(0, bar), "/");
  if (!steps || (!has(line, kSkipped) && !(of_all && has(line, "| loss scale:")))) {
    return std::nullopt;
  }
  return Periodic{*steps, false, count_after(line, kSkipped), true};
}

/// Of training: lines of validation have neither the scale nor the norm.
std::optional<Periodic> fairseq_progress(std::string_view line) {
  auto updates = count_field(line, "num_updates");
  if (!updates) updates = count_field(line, "train_num_updates");
  if (!updates || !(has(line, "gnorm") || has(line, "loss_scale"))) return std::nullopt;
  return Periodic{*updates, true, std::nullopt, false};
}

std::optional<Periodic> insightface_progress(std::string_view line) {
  const auto steps = count_after(line, "Global Step:");
  if (!steps || !has(line, "Grad Scale:")) return std::nullopt;
  return Periodic{*steps, false, std::nullopt, false};
}

std::optional<Periodic> mlperf_progress(std::string_view line) {
  const auto steps = count_field(line, "step");
  if (!steps || !has(line, "loss_scale")) return std::nullopt;
  return Periodic{*steps, false, std::nullopt, false};
}

std::optional<Periodic> paddlenlp_progress(std::string_view line) {
  const auto steps = count_after(line, "global_step:");
  if (!steps || !has(line, "loss:") || !has(line, "learning_rate:")) return std::nullopt;
  return Periodic{*steps, false, std::nullopt, false};
}

struct Form {
  std::string_view mark;  ///< a line without it is not of that form
  std::optional<Periodic> (*read)(std::string_view line);
};
constexpr Form kForms[] = {
    {"skipped=", deepspeed_progress},       {"iteration ", megatron_progress},
    {"num_updates", fairseq_progress},      {"global_step:", paddlenlp_progress},
    {"Global Step:", insightface_progress}, {":::MLL", mlperf_progress}};

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
                           {"grad norm", &LineScalars::gradient_norm},
                           {"grad_norm", &LineScalars::gradient_norm},
                           {"gnorm", &LineScalars::gradient_norm},
                           {"loss scale", &LineScalars::loss_scale},
                           {"loss_scale", &LineScalars::loss_scale},
                           {"train_loss_scale", &LineScalars::loss_scale},
                           {"Grad Scale", &LineScalars::loss_scale}};

/// A bar over validation has a validation's loss.
bool is_validation(std::string_view line) {
  constexpr std::array<std::string_view, 6> kWords = {"alid", "Eval", "eval",
                                                      "Test", "test", "Sanity"};
  const std::string_view begin = line.substr(0, line.find("%|"));
  return std::ranges::any_of(kWords, [&](std::string_view word) { return has(begin, word); });
}

std::optional<std::int64_t> pipeline_step(std::string_view line) {
  return has(line, " iter time (s):") ? count_after(line, "steps:") : std::nullopt;
}

/// "{'loss': 1.2, ...": a Python dictionary; JSON has other quotes, and is another tool's.
bool is_dictionary(std::string_view line) {
  return has(line, "{'loss': ") || (has(line, "{'") && has(line, "'grad_norm': "));
}

}  // namespace

std::optional<Periodic> periodic_of(std::string_view line) {
  for (const Form& form : kForms) {
    if (!has(line, form.mark)) continue;
    if (const auto found = form.read(line)) return found;
  }
  return std::nullopt;
}

std::optional<Bar> bar_of(std::string_view line) {
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

LineScalars scalars_of(std::string_view line, bool tells_steps, bool has_bar) {
  LineScalars found;
  if (has(line, "{'eval_loss': ")) found.evaluation_loss = field(line, "eval_loss");
  const bool of_training = has_bar && !is_validation(line);
  const auto of_pipeline = tells_steps ? std::nullopt : pipeline_step(line);
  if (!tells_steps && !of_training && !of_pipeline && !is_dictionary(line)) return found;
  for (const Name& name : kNames) {
    if (!(found.*name.scalar)) found.*name.scalar = field(line, name.name);
  }
  found.nan_iterations = count_after(line, "number of nan iterations:");
  if (of_training && !tells_steps) found.step = count_field(line, "global_step");
  if (of_pipeline) found.step = of_pipeline;
  return found;
}

}  // namespace halfscope::analyzers::readers::console
