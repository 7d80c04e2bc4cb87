// SPDX-License-Identifier: Apache-2.0
// Options and output that several subcommands share.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/study.hpp"
#include "cli/options/parser.hpp"

namespace halfscope::cli::options {

/// What the user selects of which logs, as typed.
struct LogOptions {
  std::vector<std::string> logs;
  std::string recorded_scale, loss_scale = "1", format = "binary16", subnormals = "keep";
  std::string steps, tensor, read_as;
  std::vector<std::string> roles;
  analyzers::Passes passes;  ///< what a command finds beyond the tables
  std::string learning_rate;
  std::optional<std::uint64_t> ranks;
  std::optional<std::string> lines;
  std::shared_ptr<void> thread_limit;  ///< --threads: holds for as long as the options live
};

/// What --subnormals takes.
std::vector<std::string> subnormals_names();

/// A log's path as typed, as the readers know it: "-" is standard input. For Option::rewrite, with
/// a state that remembers that it was typed.
std::function<std::string(std::string&)> standard_input_once();
/// Takes standard input where it is among the logs. Throws log::BadInput.
void open_standard_input(const std::vector<std::string>& logs);

/// LOG..., --recorded-scale, --role, --as, --ranks, --lines and --threads: what every subcommand
/// that reads logs takes.
void add_logs(Command& command, LogOptions& options);
/// The same without LOG.
void add_reading(Command& command, LogOptions& options);
/// --lr.
void add_learning_rate(Command& command, LogOptions& options);
/// --step and --tensor.
void add_steps_and_tensors(Command& command, LogOptions& options);
/// What --format is by default: FP16, or the format that the run computed in, FP16 or BF16.
enum class FormatDefault : std::uint8_t { binary16, of_run };
void add_format(Command& command, LogOptions& options, FormatDefault without);
/// The selections of `analyze`: scale, format, subnormals, steps, tensors.
void add_selections(Command& command, LogOptions& options,
                    FormatDefault without = FormatDefault::binary16);

/// What the options select, and the format they ask for. Throws BadUsage.
analyzers::frames::Selection selection_of(const LogOptions& options);
analyzers::underflow::Target target_of(const LogOptions& options);

/// Reads and analyses the logs, with a progress bar on a terminal. print_notes() prints the notes.
/// Throws BadUsage and log::BadInput.
analyzers::Findings run_analysis(const LogOptions& options);

/// The text with A to Z as a to z.
std::string lower_case(std::string_view text);

/// A positive finite number, or 2^K. Throws BadUsage naming the option.
double parse_scale(std::string_view option, const std::string& text);
/// The same of a scale that a run carries: a positive normal binary32 number.
double parse_training_scale(std::string_view option, const std::string& text);

/// --policy, which may be given again.
void add_policy_choice(Command& command, std::vector<std::string>& policies);
/// A policy and its settings, as typed. Throws BadUsage naming the option.
policy::Policy parse_policy(const std::string& text, std::string_view option = "--policy");

/// --headroom, --target-underflow and what loss is negligible or serious; the parser checks each.
void add_targets(Command& command, analyzers::underflow::RecommendOptions& options);
/// Throws BadUsage where a serious loss would be less than a negligible one.
void require_sense(const analyzers::underflow::RecommendOptions& options);

/// --enough-snr, of formats that fit.
void add_enough_snr(Command& command, analyzers::Passes& passes);

}  // namespace halfscope::cli::options
