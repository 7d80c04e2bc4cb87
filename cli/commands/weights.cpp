// SPDX-License-Identifier: Apache-2.0
// `halfscope weights`: which weights move between checkpoints, or over the steps of a run.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analyzers/weights/claims.hpp"
#include "analyzers/weights/moved.hpp"
#include "cli/commands/commands.hpp"
#include "cli/gates/gate.hpp"
#include "cli/gates/junit.hpp"
#include "cli/options/common.hpp"
#include "cli/options/notes.hpp"
#include "cli/options/output.hpp"
#include "cli/terminal/text_table.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/claims.hpp"
#include "reports/answer/weights.hpp"
#include "reports/export/json_weights.hpp"

namespace halfscope::cli::commands {
namespace {

using analyzers::weights::MovedOptions;
using options::BadUsage;

struct WeightsOptions : options::LogOptions {
  MovedOptions asked;
  std::vector<std::string> two_steps;
  std::string set_file, json;
  bool forecast = false, moments = false, counts = false;
  int moment_steps = 1000;
  gates::GateOptions gate;
};

std::int64_t step_of(const std::string& text) {
  std::int64_t step = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, step);
  if (error == std::errc() && stop == end) return step;
  throw BadUsage(fmt::format("--steps: found '{}', expected the number of a sampled step",
                             log::printable(text)));
}

MovedOptions asked_of(const WeightsOptions& options) {
  MovedOptions asked = options.asked;
  asked.set = options.set_file;
  asked.stalls = !options.counts;
  if (options.two_steps.empty()) return asked;
  if (options.logs.size() == 2) {
    throw BadUsage(
        "--steps names two steps of one run log, and two checkpoints are given; leave "
        "out --steps or the second");
  }
  asked.steps.emplace(step_of(options.two_steps[0]), step_of(options.two_steps[1]));
  return asked;
}

/// Writes an answer as JSON where it was asked for, or prints it.
void show(const WeightsOptions& options, const auto& found,
          const std::vector<analyzers::weights::Claim>& claims = {}) {
  options::note_later(found.notes);
  if (!options.json.empty()) {
    nlohmann::ordered_json json = reports::exports::to_json(found);
    reports::exports::put_claims(json, claims);
    options::write_output(options.json, reports::exports::json_text(json) + "\n");
  }
  if (options.json == "-") return;
  auto sections = reports::answer::weights_sections(found);
  sections.push_back(reports::answer::claims_section(claims));
  fmt::print("{}", terminal::sections_text(sections));
}

/// Returns compute(progress callback), with a progress bar.
auto with_bar(const auto& compute) {
  options::Progress bar("reading");
  auto found = compute([&](std::uint64_t done, std::uint64_t all) { bar.show(done, all); });
  bar.clear();
  return found;
}

/// Shows which weights move, and what their state holds; returns the exit code of the gate.
int run_moved(const WeightsOptions& options) {
  const auto conditions = gates::parse_conditions(options.gate, analyzers::gates::Subject::tensor);
  const MovedOptions asked = asked_of(options);
  const std::vector<std::filesystem::path> logs(options.logs.begin(), options.logs.end());
  const analyzers::frames::Selection selection = options::selection_of(options);
  const auto found = with_bar([&](const auto& progress) {
    analyzers::Findings all;
    all.movements = {analyzers::weights::moved_weights(logs, selection, asked, progress)};
    if (!options.counts) {
      all.claims = analyzers::weights::claims_in(logs, selection, progress, all.movements[0].steps);
    }
    return all;
  });
  show(options, found.movements.front(), found.claims);
  const gates::GateTests gate = gates::test_conditions(conditions, found);
  gates::write_junit(options.gate.junit, "weights", gate);
  return gates::close_gate(gate);
}

int run(const WeightsOptions& options) {
  namespace weights = analyzers::weights;
  if (options.logs.size() > 2) {
    throw BadUsage(
        fmt::format("found {} logs, expected one run log or two checkpoints", options.logs.size()));
  }
  options::require_own_files({options.json, options.set_file, options.gate.junit}, options);
  if (!options.forecast && !options.moments) return run_moved(options);
  if (options.logs.size() != 1 || !options.two_steps.empty() || !options.set_file.empty() ||
      !options.gate.fail_if.empty() || options.asked.bytes || options.forecast == options.moments) {
    throw BadUsage(
        fmt::format("{}: expected one run log, without {}, --steps, --set, --bytes and --fail-if",
                    options.forecast ? "--forecast" : "--moments",
                    options.forecast ? "--moments" : "--forecast"));
  }
  const std::filesystem::path log = options.logs[0];
  const analyzers::frames::Selection selection = options::selection_of(options);
  if (options.forecast) {
    show(options, with_bar([&](const auto& progress) {
           return weights::forecast_weights(log, selection, options.asked.copies, progress);
         }));
  } else {
    const auto steps = static_cast<std::uint64_t>(options.moment_steps);
    show(options, with_bar([&](const auto& progress) {
           return weights::replay_moments(log, selection, steps, progress);
         }));
  }
  return options::kFine;
}

constexpr std::array kCopies = {Dtype::bf16, Dtype::f16, Dtype::f8_e4m3, Dtype::f8_e5m2};
constexpr const char* kWeightsExamples =
    "Example:  halfscope weights step-100.safetensors step-200.safetensors --bytes\n"
    "          halfscope weights runs/gpt --set moved.safetensors\n"
    "          halfscope weights runs/gpt --forecast\n"
    "          halfscope weights runs/gpt --moments";

}  // namespace

void add_weights(options::Parser& parser) {
  options::Command command =
      parser.add("weights", "Which weights move, and which never do: checkpoints, steps of a run");
  const auto options = std::make_shared<WeightsOptions>();
  command
      .option("A", options->logs,
              "two checkpoints (safetensors, torch.save, folders), or one run log with whole "
              "tensors of several steps")
      .type("[B]")
      .required();
  options::add_reading(command, *options);
  options::add_steps_and_tensors(command, *options);
  command.option("--steps", options->two_steps, "compare only the sampled steps X and Y")
      .type("X Y")
      .values(2);
  command.words(
      "--format", {"bf16", "f16", "e4m3", "e5m2"},
      [options](std::size_t i) { options->asked.copies = kCopies[i]; },
      "format of the copies of FP32 weights; others keep their own (default: bf16)");
  command
      .option("--set", options->set_file,
              "write which weights moved as safetensors (docs/weights.md)")
      .type("FILE");
  command.flag("--counts", options->counts, "only count and write the set; faster");
  command.flag("--bytes", options->asked.bytes, "sizes of sparse updates, also compressed; slower");
  command.flag("--forecast", options->forecast,
               "instead: a forecast of the copies that each step changes, and what became of it");
  command.flag("--moments", options->moments,
               "instead: Adam's moments in 16 and 8 bits, by a replay of a run log's gradients");
  command
      .option("--moment-steps", options->moment_steps,
              "replayed steps of --moments, which repeat the recorded gradients")
      .type("N")
      .within(1, 1000000)
      .show_default();
  gates::add_gate(command, options->gate);
  command.option("--json", options->json, "write all numbers as JSON; - for stdout").type("FILE");
  command.footer(kWeightsExamples);
  command.runs([options] { return run(*options); });
}

}  // namespace halfscope::cli::commands
