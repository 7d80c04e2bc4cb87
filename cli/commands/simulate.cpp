// SPDX-License-Identifier: Apache-2.0
// `halfscope simulate`: trains a network with emulated precision and writes a run log.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>

#include "cli/commands/commands.hpp"
#include "cli/commands/step_line.hpp"
#include "cli/options/common.hpp"
#include "cli/options/notes.hpp"
#include "cli/options/output.hpp"
#include "cli/simulate/run_folder.hpp"
#include "cli/simulate/simulation.hpp"
#include "cli/terminal/text_answer.hpp"
#include "halfscope/log/error.hpp"
#include "sim/training/trainer.hpp"

namespace halfscope::cli::commands {

using options::BadUsage;
using options::Command;
using sim::networks::Network;

namespace {

using sim::backend::UpdateRule;
using sim::training::Settings;

/// Options as typed. The default of an optional is the network's or, with --resume, the run's.
struct SimulateOptions {
  std::string network, out, times;
  std::optional<std::string> backend, data, precision, accumulate, loss_scale, optimizer;
  std::optional<double> lr, weight_decay, clip;
  std::optional<std::int64_t> batch, steps, record_every, sample_every, checkpoint_every;
  std::optional<int> accumulation_steps, ranks;
  std::optional<std::uint64_t> seed;
  int threads = 0;
  bool true_error = false, check_operations = false, resume = false, force = false, list = false;
};

constexpr double kAdamRate = 0.001, kMomentumShare = 0.1;

const Network& network_of(const std::string& name) {
  if (const Network* const known = sim::networks::find_network(name)) return *known;
  std::string names;
  for (const Network& network : sim::networks::networks()) {
    names += (names.empty() ? "" : ", ") + std::string(network.name);
  }
  throw BadUsage(
      fmt::format("simulate: unknown network '{}'; use one of {}", log::printable(name), names));
}

/// Returns true if the text looks like a number, even one that is not a valid loss scale.
bool is_number(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return false;
  const std::string lower = options::lower_case(text);
  return text[0] == '.' || (text[0] >= '0' && text[0] <= '9') || lower == "inf" ||
         lower == "infinity" || lower == "nan";
}

std::optional<policy::Policy> scaling_of(const std::string& text) {
  if (text == "none") return std::nullopt;
  if (is_number(text)) {
    return policy::make(
        fmt::format("static,scale={}", options::parse_training_scale("--loss-scale", text)));
  }
  try {
    return options::parse_policy(text, "--loss-scale");
  } catch (const BadUsage& error) {
    throw BadUsage(std::string(error.what()) + "; 'none' and a number are also accepted");
  }
}

double default_rate(const Settings& settings) {
  if (settings.rule.kind == UpdateRule::Kind::adam) return kAdamRate;
  const double rate = settings.network->learning_rate;
  return settings.rule.kind == UpdateRule::Kind::momentum ? rate * kMomentumShare : rate;
}

template <class T>
void take(const std::optional<T>& given, T& setting) {
  if (given) setting = *given;
}

void take_given(const SimulateOptions& options, Settings& settings) {
  take(options.data, settings.data);
  if (options.precision) {
    settings.precision = *std::find_if(
        sim::backend::kPrecisions.begin(), sim::backend::kPrecisions.end(),
        [&](const sim::backend::Precision& p) { return p.name == *options.precision; });
  }
  if (options.accumulate) {
    settings.accumulation = *sim::backend::find_accumulation(*options.accumulate);
  }
  if (options.loss_scale) settings.policy = scaling_of(*options.loss_scale);
  if (options.optimizer) {
    settings.rule.kind = *options.optimizer == "adam"       ? UpdateRule::Kind::adam
                         : *options.optimizer == "momentum" ? UpdateRule::Kind::momentum
                                                            : UpdateRule::Kind::sgd;
  }
  take(options.lr, settings.rule.learning_rate);
  take(options.weight_decay, settings.rule.weight_decay);
  take(options.clip, settings.clip);
  take(options.batch, settings.batch);
  take(options.steps, settings.steps);
  take(options.accumulation_steps, settings.accumulation_steps);
  take(options.ranks, settings.ranks);
  take(options.seed, settings.seed);
  take(options.record_every, settings.record_every);
  take(options.sample_every, settings.sample_every);
  take(options.checkpoint_every, settings.checkpoint_every);
  settings.true_error = settings.true_error || options.true_error;
  settings.check_operations = options.check_operations;
  if (options.backend) {
    settings.cudnn = *options.backend == "cudnn" ||
                     (*options.backend == "auto" && sim::backend::cudnn_missing_message().empty() &&
                      settings.accumulation.architecture == nullptr);
  }
  settings.threads = options.threads;
}

/// Throws BadUsage if the Tensor Core does not support the tensors' type or the backend is a GPU.
void require_tensor_core(const Settings& settings) {
  if (settings.accumulation.architecture == nullptr) return;
  const std::string found = "simulate: --accumulate " + text_of(settings.accumulation);
  if (settings.cudnn) {
    throw BadUsage(found +
                   " is emulated on the CPU, and --backend cudnn adds on the GPU; use "
                   "--backend cpu");
  }
  if (settings.accumulation.unit_for(settings.precision.tensors)) return;
  std::string known;
  for (const sim::backend::Precision& p : sim::backend::kPrecisions) {
    if (!settings.accumulation.unit_for(p.tensors)) continue;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", p.name);
  }
  throw BadUsage(
      fmt::format("{}: {} has no Tensor Core for the tensors of --precision {}; use one "
                  "of {}",
                  found, settings.accumulation.architecture->name, settings.precision.name, known));
}

Settings settings_of(const SimulateOptions& options) {
  Settings settings;
  if (options.resume) {
    settings = sim::training::recorded_settings(options.out);
    if (!options.network.empty()) settings.network = &network_of(options.network);
  } else {
    settings.network = &network_of(options.network);
    settings.data = settings.network->data;
    settings.batch = settings.network->batch;
    settings.steps = settings.network->steps;
  }
  take_given(options, settings);
  require_tensor_core(settings);
  if (!options.resume && !options.lr) settings.rule.learning_rate = default_rate(settings);
  return settings;
}

volatile std::sig_atomic_t interrupted = 0;

/// Handler of Ctrl-C: the first ends the run after the current step, the second immediately.
class Interrupt {
 public:
  Interrupt()
      : before_(std::signal(SIGINT, [](int) {
          interrupted = 1;
          std::signal(SIGINT, SIG_DFL);
        })) {}
  ~Interrupt() { std::signal(SIGINT, before_); }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

 private:
  void (*before_)(int);
};

void require_usage(const SimulateOptions& options) {
  if (options.list) return;
  if (options.out.empty()) {
    throw BadUsage("simulate: --out is missing; give a folder for the run");
  }
  if (options.network.empty() && !options.resume) {
    throw BadUsage("simulate: NETWORK is missing; 'halfscope simulate --list' shows all networks");
  }
  if (options.resume && options.force) {
    throw BadUsage("simulate: found --resume and --force; give one of them");
  }
}

/// Throws BadUsage if two settings contradict each other.
void require_fit(const Settings& settings) {
  if (settings.check_operations && !settings.cudnn) {
    throw BadUsage(
        "simulate: --check-operations compares the cudnn backend with emulation; add --backend "
        "cudnn");
  }
  if (settings.true_error && settings.ranks > 1) {
    throw BadUsage(
        "simulate: --true-error compares the gradients of one rank; remove it, or --ranks");
  }
}

int run(const SimulateOptions& options) {
  require_usage(options);
  if (options.list) {
    fmt::print("{}", terminal::choices_text());
    return options::kFine;
  }
  const Settings settings = settings_of(options);
  require_fit(settings);
  if (const std::string why = settings.cudnn ? sim::backend::cudnn_missing_message() : "";
      !why.empty()) {
    options::say("simulate: --backend cudnn: {}; --backend cpu emulates the same network", why);
    return options::kNotHere;
  }
  if (!options.resume) simulate::make_room(options.out, options.force, settings);
  interrupted = 0;
  sim::training::RunSummary summary;
  StepTimes times;
  {
    const Interrupt interrupt;
    StepLine line(settings.steps);
    const auto told = [&](const sim::training::StepResult& step) {
      line.show(step);
      times.tick();
      return interrupted == 0;
    };
    const auto note = [](const std::string& text) { options::say("{}", text); };
    summary = options.resume ? sim::training::resume(settings, options.out, told, note)
                             : sim::training::train(settings, options.out, told);
  }
  if (!options.times.empty()) options::write_output(options.times, times.to_json().dump() + "\n");
  fmt::print("{}", terminal::simulation_text(simulate::simulation_of(settings, summary)));
  return summary.stopped ? options::kInterrupted : options::kFine;
}

void add_training(Command& command, SimulateOptions& options) {
  command.option("--data", options.data,
                 "data set by name, or a file or folder (default: the network's)");
  command
      .option("--precision", options.precision,
              "fp32; fp16: all in FP16; mixed: FP16 with FP32 master weights; bf16 and "
              "mixed-bf16: the same in bfloat16 (default: fp32)")
      .one_of({"fp32", "fp16", "mixed", "bf16", "mixed-bf16"});
  command
      .option("--accumulate", options.accumulate,
              "how products are summed: in a format, or bit for bit as the Tensor Cores of an "
              "architecture do it, in FP32 (default: fp32)")
      .one_of(options::words_of(sim::backend::accumulations(),
                                [](const auto& one) { return text_of(one); }));
  command
      .option("--loss-scale", options.loss_scale,
              "none, a number, or a policy with its settings (default: none; 'halfscope policies "
              "--list' shows all policies)")
      .type("none|NUMBER|POLICY");
  command.option("--optimizer", options.optimizer, "default: sgd")
      .one_of({"sgd", "momentum", "adam"});
  command
      .option("--lr", options.lr,
              "learning rate (default: the network's; a tenth of it with momentum, 0.001 "
              "with adam)")
      .at_least(0.0);
  command.option("--batch", options.batch, "examples per microbatch (default: the network's)")
      .at_least(std::int64_t{1});
  command.option("--weight-decay", options.weight_decay, "L2, added to gradients (default: 0)")
      .at_least(0.0);
  command
      .option("--clip", options.clip,
              "limit on the norm of all unscaled gradients (default: 0, none)")
      .at_least(0.0);
  command
      .option("--accumulation-steps", options.accumulation_steps,
              "microbatches per step, of each rank (default: 1)")
      .at_least(1);
}

void add_recording(Command& command, SimulateOptions& options) {
  command.option("--record-every", options.record_every, "steps between histograms (default: 10)")
      .at_least(std::int64_t{1});
  command
      .option("--sample-every", options.sample_every,
              "record whole tensors every so many steps (default: 0, the first and the last step "
              "with histograms)")
      .at_least(std::int64_t{0});
  command.flag("--true-error", options.true_error,
               "compare the gradients of recorded steps with binary64 gradients and write "
               "RUN/true_error.jsonl; such a step takes about ten times as long");
  command.flag("--check-operations", options.check_operations,
               "with --backend cudnn: also emulate every operation of recorded steps from the same "
               "inputs and write RUN/operations.json");
  command
      .option("--checkpoint-every", options.checkpoint_every,
              "write a checkpoint every so many steps (default: 100)")
      .at_least(std::int64_t{1});
}

void add_running(Command& command, SimulateOptions& options) {
  command
      .option("--backend", options.backend,
              "cpu: emulation on the CPU; cudnn: an NVIDIA GPU; auto: a GPU if there is one "
              "(default: cpu)")
      .one_of({"auto", "cpu", "cudnn"});
  command
      .option("--ranks", options.ranks,
              "data-parallel ranks, one after the other; the log has their gradients before they "
              "are added up (default: 1)")
      .within(1, 1024);
  command.option("--steps", options.steps, "default: the network's").at_least(std::int64_t{1});
  command
      .option("--seed", options.seed,
              "seed of weights, order of data, and generated data (default: 0)")
      .at_least(std::uint64_t{0});
  command
      .option("--threads", options.threads,
              "number of threads, the same results for any (default: 0, all cores)")
      .at_least(0);
  command
      .option("--times", options.times, "write how long steps took, as JSON; - for standard output")
      .type("FILE");
  command.flag("--resume", options.resume,
               "continue from the last checkpoint in --out, with the run's own settings");
  command.flag("--force", options.force, "replace the run in --out");
}

}  // namespace

void add_simulate(options::Parser& parser) {
  Command command =
      parser.add("simulate", "Train a network in emulated precision and record the run");
  const auto options = std::make_shared<SimulateOptions>();
  command.option("NETWORK", options->network, "network by name; --list shows all");
  command.option("--out", options->out, "folder to write the run to").type("RUN");
  command.flag("--list", options->list, "list the networks and the data sets");
  add_training(command, *options);
  add_recording(command, *options);
  add_running(command, *options);
  command.footer(
      "Example:  halfscope simulate lenet --out runs/lenet\n"
      "          halfscope simulate lenet --precision mixed --loss-scale torch --out runs/mixed");
  command.runs([options] { return run(*options); });
}

}  // namespace halfscope::cli::commands
