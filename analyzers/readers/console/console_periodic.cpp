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
// * "Train Metrics (step 100) - NLL Loss: 5.1 | Gradient Norm: 1.2 | ... | Loss Scale: 64":
//   fairseq2 metrics/recorder.py. A step that overflows is repeated: the number counts applied
//   updates.
// * "loss: 1.2, learning_rate: 0.001, global_step: 10, ...": PaddleNLP's Trainer.
// * "Training epoch 0, iteration 9/99 | lr: 0.001 | ... | global_step: 9 | reduced_train_loss: 1":
//   NeMo 2.
// * "{ Epoch:[  1/  2], step:[   10/  100], loss: 1.2, ..., lr: 0.001, overflow cond: False,
//   loss_scale: 65536.0, global_norm: [1.2]": MindFormers core/callback. The step is one of the
//   epoch; where the condition is True the step was skipped.
// * "Epoch 1/200, Step 100/3995, imgsize (640, 640), loss: 11.6, ..., cur_lr: 0.09": MindYOLO.
// * "(0/4) Epoch 1, batch 50, loss[loss=0.66, ...], tot_loss[...], batch size: 130, lr: 2.73e-02,
//   grad_scale: 1.0", with "global_batch_idx: 150" in some recipes: icefall's train.py. Batches of
//   an epoch are counted from 0; the scale is the one after the step.
// * "Training: .. Loss 10.2   LearningRate 0.1   Epoch: 0   Global Step: 100   Fp16 Grad Scale:
//   1024   Required: 10 hours": insightface.
// * ":::MLLOG {.., "value": {.., "loss_scale": 1024}, "metadata": {.., "step": 10}}": MLPerf's log.
#include <algorithm>
#include <cctype>

#include "analyzers/readers/common/text_lines.hpp"
#include "analyzers/readers/console/console_lines.hpp"
#include "analyzers/readers/console/console_words.hpp"

namespace halfscope::analyzers::readers::console {
namespace {

constexpr std::string_view kSkipped = "number of skipped iterations:";

std::optional<Periodic> deepspeed_progress(const Line& line) {
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
std::optional<Periodic> megatron_progress(const Line& line) {
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
std::optional<Periodic> fairseq_progress(const Line& line) {
  auto updates = count_field(line, "num_updates");
  if (!updates) updates = count_field(line, "train_num_updates");
  if (!updates || !(has(line, "gnorm") || has(line, "loss_scale"))) return std::nullopt;
  return Periodic{*updates, true, std::nullopt, false};
}

std::optional<Periodic> insightface_progress(const Line& line) {
  const auto steps = count_after(line, "Global Step:");
  if (!steps || !has(line, "Grad Scale:")) return std::nullopt;
  return Periodic{*steps, false, std::nullopt, false};
}

std::optional<Periodic> mlperf_progress(const Line& line) {
  const auto steps = count_field(line, "step");
  if (!steps || !has(line, "loss_scale")) return std::nullopt;
  return Periodic{*steps, false, std::nullopt, false};
}

std::optional<Periodic> paddlenlp_progress(const Line& line) {
  const auto steps = count_after(line, "global_step:");
  if (!steps || !has(line, "loss:") || !has(line, "learning_rate:")) return std::nullopt;
  return Periodic{*steps, false, std::nullopt, false};
}

/// Step n of N in epoch E, both counted from 1: "E/..." and "n/N" after their marks.
std::optional<std::int64_t> step_of_epochs(const Line& line, std::string_view epoch_mark,
                                           std::string_view step_mark) {
  const auto at = after(line, step_mark);
  if (!at) return std::nullopt;
  const std::int64_t step = count_after(line, step_mark).value_or(-1);
  const std::int64_t in_epoch = count_after(*at, "/").value_or(-1);
  const std::int64_t epoch = count_after(line, epoch_mark).value_or(1);
  if (step < 0 || epoch < 1 || step > in_epoch) return std::nullopt;
  if (epoch > 1 && in_epoch > (kMostSteps - step) / (epoch - 1)) return std::nullopt;
  return (epoch - 1) * in_epoch + step;
}

std::optional<Periodic> mindformers_progress(const Line& line) {
  const auto steps = step_of_epochs(line, "Epoch:[", "step:[");
  return steps ? std::optional(Periodic{*steps, false, std::nullopt, false}) : std::nullopt;
}

std::optional<Periodic> mindyolo_progress(const Line& line) {
  const auto steps = step_of_epochs(line, "Epoch ", ", Step ");
  return steps ? std::optional(Periodic{*steps, false, std::nullopt, false}) : std::nullopt;
}

std::optional<Periodic> fairseq2_progress(const Line& line) {
  const auto steps = count_after(line, "Train Metrics (step ");
  if (!steps) return std::nullopt;
  return Periodic{*steps, true, std::nullopt, false, "fairseq2's step"};
}

std::optional<Periodic> nemo_progress(const Line& line) {
  const auto steps = count_after(line, "| global_step:");
  if (!steps || !has(line, "Training epoch ")) return std::nullopt;
  return Periodic{*steps, false, std::nullopt, false};
}

/// "(0/4) " before "Epoch": the rank that prints.
std::optional<std::int64_t> icefall_rank(std::string_view before) {
  const std::size_t open = before.rfind('(');
  if (open == std::string_view::npos || !before.ends_with(") ")) return std::nullopt;
  return count_after(before.substr(open), "(");
}

std::optional<Periodic> icefall_progress(const Line& line) {
  const std::size_t at = line.find("Epoch ");
  const auto epoch = at == std::string_view::npos ? std::nullopt : count_after(line, "Epoch ");
  const auto batch = count_after(line, ", batch ");
  if (!epoch || !batch || !has(line, "loss[")) return std::nullopt;
  const std::int64_t rank = icefall_rank(line.substr(0, at)).value_or(0);
  if (const auto all = count_after(line, "global_batch_idx:")) {
    return Periodic{*all, false, std::nullopt, false, {}, InEpoch{std::nullopt, rank}};
  }
  return Periodic{*batch + 1, false, std::nullopt, false, {}, InEpoch{*epoch, rank}};
}

struct PeriodicForm {
  std::string_view mark;  ///< a line without it is not of that form
  std::optional<Periodic> (*read)(const Line& line);
};
constexpr PeriodicForm kPeriodicForms[] = {{"skipped=", deepspeed_progress},
                                           {"iteration ", megatron_progress},
                                           {"num_updates", fairseq_progress},
                                           {"global_step:", paddlenlp_progress},
                                           {"Global Step:", insightface_progress},
                                           {":::MLL", mlperf_progress},
                                           {"overflow cond:", mindformers_progress},
                                           {", imgsize", mindyolo_progress},
                                           {"Train Metrics (step", fairseq2_progress},
                                           {"| global_step:", nemo_progress},
                                           {", batch ", icefall_progress}};

}  // namespace

std::optional<Periodic> periodic_of(const Line& line) {
  for (const PeriodicForm& form : kPeriodicForms) {
    if (!has(line, form.mark)) continue;
    if (const auto found = form.read(line)) return found;
  }
  return std::nullopt;
}

}  // namespace halfscope::analyzers::readers::console
