// SPDX-License-Identifier: Apache-2.0
#include "sim/training/trainer.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <deque>
#include <memory>
#include <stdexcept>

#include "halfscope/log/error.hpp"
#include "sim/backend/paired_backend.hpp"
#include "sim/training/checkpoint.hpp"
#include "sim/training/run_settings.hpp"
#include "sim/training/stepper.hpp"

namespace halfscope::sim::training {

using backend::PairedBackend;

namespace {

/// A run ends after this number of consecutive steps without a finite loss.
constexpr std::int64_t kDiverged = 100;

void require(bool holds, const char* what) {
  if (!holds) throw std::invalid_argument(std::string("a run's settings: ") + what);
}

void require_sense(const Settings& s) {
  require(s.network != nullptr, "the network is missing");
  require(s.batch >= 1, "a batch needs 1 example or more");
  require(s.steps >= 1, "a run needs 1 step or more");
  require(s.accumulation_steps >= 1, "a step needs 1 microbatch or more");
  require(s.ranks >= 1, "a run needs 1 rank or more");
  require(s.ranks == 1 || !s.true_error, "true gradients are those of one rank");
  require(s.record_every >= 1, "histograms are recorded every 1 or more steps");
  require(s.sample_every >= 0, "whole tensors are recorded every 0 or more steps");
  require(s.checkpoint_every >= 1, "checkpoints are written every 1 or more steps");
  require(s.clip >= 0 && std::isfinite(s.clip),
          "the norm to clip at is a finite number, 0 or above");
  require(s.rule.weight_decay >= 0 && std::isfinite(s.rule.weight_decay),
          "the weight decay is a finite number, 0 or above");
  require(s.rule.learning_rate >= 0 && std::isfinite(s.rule.learning_rate),
          "the learning rate is a finite number, 0 or above");
  if (s.accumulation.architecture == nullptr) return;
  require(!s.cudnn, "a Tensor Core is emulated on the processor alone");
  require(s.accumulation.unit_for(s.precision.tensors).has_value(),
          "the architecture has no Tensor Core for tensors of this precision");
}

std::unique_ptr<backend::Backend> backend_of(const Settings& settings) {
  const auto emulation = [&] {
    return backend::make_cpu_backend(settings.accumulation, settings.threads);
  };
  if (!settings.cudnn) return emulation();
  if (!settings.check_operations) return backend::make_cudnn_backend(settings.accumulation);
  return std::make_unique<PairedBackend>(backend::make_cudnn_backend(settings.accumulation),
                                         emulation());
}

/// The objects that a run works with.
struct Parts {
  explicit Parts(const Settings& settings)
      : data(data::open_data(settings.data, settings.seed)),
        backend(backend_of(settings)),
        paired(dynamic_cast<PairedBackend*>(backend.get())),
        state(settings, *backend) {
    const std::string why =
        settings.network->refuses != nullptr ? settings.network->refuses(*data) : std::string();
    if (!why.empty()) {
      throw log::BadInput(
          fmt::format("{} cannot be trained on {}", settings.network->name, log::printable(why)));
    }
    if (state.scaling.by_layer() && settings.accumulation_steps * settings.ranks > 1) {
      throw log::BadInput(
          "policy als: finds new factors in every backward pass, so microbatches would carry "
          "different scales; remove --accumulation-steps and --ranks, or choose another policy");
    }
    make_parameters(settings, *data, state);
  }

  log::Manifest manifest(const Settings& settings, int rank) {
    return manifest_of(settings, rank, *data, *backend, state.parameters.trained());
  }

  std::unique_ptr<data::Data> data;
  std::unique_ptr<backend::Backend> backend;
  PairedBackend* paired;  ///< equals `backend` if operations are checked, else null
  TrainingState state;
};

/// Returns why the run ends after this step, or an empty string.
std::string reason_to_end(const Settings& settings, const StepResult& step,
                          const std::string& policy_error, const Counters& counters) {
  if (!policy_error.empty()) {
    return fmt::format("step {}: loss scaling by {} ends training here: {}", step.step,
                       policy::info_of(*settings.policy).name, policy_error);
  }
  if (counters.nonfinite >= kDiverged) {
    return fmt::format(
        "diverged: the loss has not been finite for {} steps, since step {}; a smaller --lr, or a "
        "--loss-scale that skips steps that overflow, may help",
        counters.nonfinite, counters.step - counters.nonfinite);
  }
  return {};
}

std::optional<double> held_out_accuracy(const Settings& settings, const data::Data& data,
                                        TrainingState& state) {
  if (settings.network->score == nullptr) return std::nullopt;
  networks::Score all;
  for (const data::Batch& batch : data.held_out(settings.batch)) {
    autograd::Tape tape(state.backend, state.parameters, false);
    const networks::Score score =
        settings.network->score(tape, state.backend, batch, settings.precision.tensors, data);
    all.right += score.right;
    all.of += score.of;
  }
  if (all.of == 0) return std::nullopt;
  return static_cast<double>(all.right) / static_cast<double>(all.of);
}

/// One log writer for each rank.
using Writers = std::deque<log::RunLogWriter>;

RunSummary run(const Settings& settings, const std::filesystem::path& folder, Parts& parts,
               Writers& writers, const StepCallback& told) {
  std::vector<Recorder> recorders;
  for (log::RunLogWriter& writer : writers) {
    recorders.emplace_back(settings, *parts.backend, writer, folder, parts.state.counters.step);
  }
  Stepper stepper(settings, *parts.data, parts.state, recorders);
  const Counters& counters = parts.state.counters;
  RunSummary summary;
  summary.folder = folder;
  const std::int64_t first = counters.step;
  while (counters.step < settings.steps && summary.ended.empty()) {
    std::string policy_error;
    const bool judged = parts.paired != nullptr && counters.step % settings.record_every == 0;
    if (judged) parts.paired->judge(true);
    const StepResult step = stepper.step(policy_error);
    if (judged) {
      parts.paired->judge(false);
      backend::write_operations(folder, parts.paired->differences(), first, step.step);
    }
    summary.ended = reason_to_end(settings, step, policy_error, counters);
    const bool goes_on = !told || told(step);
    if (!policy_error.empty())
      break;  // the state after an error cannot be continued, so it gets
              // no checkpoint
    const bool last = counters.step == settings.steps;
    if (!goes_on && !last && summary.ended.empty()) {
      summary.ended = fmt::format("stopped after step {}", step.step);
      summary.stopped = true;
    }
    if (last || !summary.ended.empty() || counters.step % settings.checkpoint_every == 0) {
      write_checkpoint(folder, settings, parts.state);
    }
  }
  summary.steps = counters.step;
  summary.skipped = counters.skipped;
  summary.attempts = counters.attempts;
  summary.first_loss = counters.first_loss;
  summary.last_loss = counters.last_loss;
  if (!summary.ended.empty()) return summary;
  summary.accuracy = held_out_accuracy(settings, *parts.data, parts.state);
  if (summary.accuracy) recorders.front().held_out(settings.steps - 1, *summary.accuracy);
  return summary;
}

void require_more(std::int64_t steps, std::int64_t done, const log::Manifest& manifest,
                  const std::filesystem::path& folder) {
  if (done < steps) return;
  const std::string run = log::printable(folder.string());
  const auto told = manifest.about->find("steps");
  const bool known = told != manifest.about->end() && told->is_number_integer();
  const std::int64_t asked = known ? told->get<std::int64_t>() : done;
  if (done < asked) {
    throw log::BadInput(
        fmt::format("{}: this run was asked for {} steps before and has done {} of them; {} are "
                    "fewer: remove --steps to continue to {}, or ask for more than {}",
                    run, asked, done, steps, asked, done));
  }
  throw log::BadInput(
      fmt::format("{}: this run has done its {} steps; ask for more with --steps, or start another "
                  "run in another folder",
                  run, done));
}

}  // namespace

void require_trainable(const Settings& settings) {
  require_sense(settings);
  const Parts parts(settings);
}

RunSummary train(const Settings& settings, const std::filesystem::path& folder,
                 const StepCallback& told) {
  require_sense(settings);
  Parts parts(settings);
  Writers writers;
  for (int rank = 0; rank < settings.ranks; ++rank) {
    writers.emplace_back(log_folder(folder, settings, rank), parts.manifest(settings, rank));
  }
  write_checkpoint(folder, settings, parts.state);
  return run(settings, folder, parts, writers, told);
}

RunSummary resume(const Settings& settings, const std::filesystem::path& folder,
                  const StepCallback& told, const NoteCallback& note) {
  require_sense(settings);
  require_same(settings, first_manifest(folder), folder);
  Parts parts(settings);
  for (const std::string& passed_over : read_checkpoint(folder, settings, parts.state)) {
    if (note) note(passed_over);
  }
  const std::int64_t done = parts.state.counters.step;
  require_more(settings.steps, done, first_manifest(folder), folder);
  Writers writers;
  for (int rank = 0; rank < settings.ranks; ++rank) {
    writers.emplace_back(log_folder(folder, settings, rank), parts.manifest(settings, rank), done);
  }
  return run(settings, folder, parts, writers, told);
}

}  // namespace halfscope::sim::training
