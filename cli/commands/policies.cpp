// SPDX-License-Identifier: Apache-2.0
// `halfscope policies`: every loss-scaling policy, replayed over a recorded run.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "analyzers/replay/policy_study.hpp"
#include "analyzers/study.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/common.hpp"
#include "cli/options/notes.hpp"
#include "cli/options/output.hpp"
#include "cli/terminal/text_answer.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/policies.hpp"
#include "reports/answer/timeline.hpp"
#include "reports/export/json.hpp"

namespace halfscope::cli::commands {

using options::BadUsage;

namespace {

using analyzers::replay::PolicyStudy;

struct PoliciesOptions : options::LogOptions {
  std::string magnitudes;  ///< --amax
  bool list = false;
  std::vector<std::string> policies;
  std::string json, framework;
  analyzers::replay::PolicyOptions replay;
};

void require_sense(const PoliciesOptions& options) {
  const bool logs = !options.logs.empty(), magnitudes = !options.magnitudes.empty();
  if (options.list && (logs || magnitudes || !options.policies.empty())) {
    throw BadUsage("policies: --list can be combined with --json only");
  }
  if (logs && magnitudes) {
    throw BadUsage("policies: found both LOG and --amax; give one of them");
  }
  const bool of_logs = !options.steps.empty() || !options.recorded_scale.empty() ||
                       !options.roles.empty() || !options.read_as.empty() || options.lines ||
                       options.replay.assume_constant;
  if (magnitudes && of_logs) {
    throw BadUsage(
        "policies: --step, --recorded-scale, --role, --as, --lines and --assume-constant-between "
        "need a LOG; they cannot be used with --amax");
  }
  if (!options.list && !logs && !magnitudes) {
    throw BadUsage(
        "policies: found neither LOG nor --amax; give a run log, --amax FILE with one largest "
        "unscaled magnitude per line, or --list");
  }
}

struct Replays {
  std::vector<PolicyStudy> studies;
  /// By PolicyStudy::series.log: the text before the replays, if no loss scale helps the log.
  std::map<std::string, std::string> first;
};

/// Replays the policies on one log. Several logs are studied separately.
void study_log(const std::string& log, const PoliciesOptions& options, Replays& to) {
  options::LogOptions one = options;
  one.logs = {log};
  analyzers::Findings found = options::run_analysis(one);
  const std::string first =
      found.verdict.beyond_scales.empty() ? "" : reports::answer::first_text(found) + "\n";
  std::vector<PolicyStudy> replays = analyzers::study_policies(std::move(found), options.replay);
  to.first.try_emplace(replays.front().series.log, first);
  for (const PolicyStudy& replay : replays) options::note_later(replay.series.notes);
  std::ranges::move(replays, std::back_inserter(to.studies));
}

Replays replays_of(const PoliciesOptions& options) {
  Replays replays;
  if (!options.magnitudes.empty()) {
    std::error_code unreadable;
    if (std::filesystem::is_fifo(options.magnitudes, unreadable)) {
      options::say("{}: is a pipe; waiting until its writer ends",
                   log::printable(options.magnitudes));
    }
    replays.studies.push_back(analyzers::replay::study_magnitudes(
        analyzers::replay::read_magnitudes(options.magnitudes), options.replay));
  }
  for (const std::string& log : options.logs) study_log(log, options, replays);
  return replays;
}

/// Writes to stderr why a policy could not be tuned: the JSON output does not say so.
void say_what_is_missing(const PoliciesOptions& options, const std::vector<PolicyStudy>& studies) {
  if (options.framework.empty()) return;
  for (const PolicyStudy& study : studies) {
    if (study.tuned) continue;
    options::write_error(
        fmt::format("halfscope: {}\n", reports::answer::not_tuned_text(study, options.framework)));
  }
}

void write_json(const PoliciesOptions& options, const std::vector<PolicyStudy>& studies) {
  if (options.json.empty()) return;
  const reports::exports::TracesOptions traces = {.with_recorded = options.policies.empty(),
                                                  .framework = options.framework};
  if (options.json == "-") say_what_is_missing(options, studies);
  options::write_pieces(options.json, [&](const options::WriteText& write) {
    reports::exports::write_traces(studies, traces, write);
  });
}

int list(const PoliciesOptions& options) {
  if (!options.json.empty()) {
    options::write_output(options.json,
                          reports::exports::json_text(reports::exports::catalogue_json()) + "\n");
  }
  if (options.json != "-") fmt::print("{}", terminal::catalogue_text());
  return options::kFine;
}

int run(PoliciesOptions options) {
  require_sense(options);
  options::require_sense(options.replay.targets);
  if (options.list) return list(options);
  options::LogOptions inputs = options;
  if (!options.magnitudes.empty()) inputs.logs.push_back(options.magnitudes);
  options::require_own_files({options.json}, inputs);
  for (const std::string& text : options.policies) {
    options.replay.policies.push_back(options::parse_policy(text));
  }
  if (!options.framework.empty()) {
    options.replay.tuned = options::parse_policy(options.framework, "--framework");
  }
  Replays replays = replays_of(options);
  write_json(options, replays.studies);
  if (options.json == "-") return options::kFine;
  for (const PolicyStudy& study : replays.studies) {
    fmt::print("{}{}", std::exchange(replays.first[study.series.log], ""),
               terminal::policies_text(study, options.framework, !options.policies.empty()));
  }
  return options::kFine;
}

void add_inputs(options::Command& command, PoliciesOptions& options) {
  command
      .option("LOG", options.logs,
              "run logs, with the largest gradient of every step; - for standard input; several "
              "logs are reported separately")
      .rewrite(options::standard_input_once());
  command
      .option("--amax", options.magnitudes,
              "instead of LOG: a text file or pipe with the largest unscaled gradient magnitude of "
              "one step per line (nan and inf allowed)")
      .type("FILE");
  command.flag("--list", options.list, "list all policies with their defaults and source");
  options::add_policy_choice(command, options.policies);
  command.flag("--assume-constant-between", options.replay.assume_constant,
               "treat missing steps as equal to the step before");
}

}  // namespace

void add_policies(options::Parser& parser) {
  options::Command command =
      parser.add("policies", "Replay every framework's loss scaling over a recorded run");
  const auto options = std::make_shared<PoliciesOptions>();
  options->passes.series = options->passes.scalars_suffice = true;
  add_inputs(command, *options);
  options::add_reading(command, *options);
  command.option("--step", options->steps, "steps A to B, B not included").type("A:B");
  options::add_targets(command, options->replay.targets);
  command
      .option("--framework", options->framework,
              "framework or policy whose dynamic settings are searched; its other settings stay as "
              "they are (default: the run's own, else PyTorch)")
      .type("NAME[,KEY=VALUE...]");
  command.option("--json", options->json, "write every policy's trace as JSON; - for stdout")
      .type("FILE");
  command.footer(
      "Example:  halfscope policies runs/mnist\n"
      "          halfscope policies runs/mnist --policy torch --policy "
      "deepspeed,initial_scale_power=16");
  command.runs([options] { return run(*options); });
}

}  // namespace halfscope::cli::commands
