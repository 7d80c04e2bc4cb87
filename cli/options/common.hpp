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

/// The selected logs and parts of logs, as typed by the user.
struct LogOptions {
  std::vector<std::string> logs;
  std::string recorded_scale, loss_scale = "1", format = "binary16", subnormals = "keep";
  std::string steps, tensor, read_as;
  std::vector<std::string> roles;
  std::vector<std::string> recipes;  ///< names of recipes; each text may be a list with commas
  analyzers::Passes passes;          ///< additional analyses that the command runs
  std::string learning_rate;
  std::optional<std::uint64_t> ranks;
  std::optional<std::string> lines;
  std::shared_ptr<void> thread_limit;  ///< limit of --threads; ends with this object
};

/// Returns a function for Option::rewrite that replaces "-" by the readers' name for standard
/// input. The function reports an error if it is called with "-" again.
std::function<std::string(std::string&)> standard_input_once();
/// Opens standard input if it is among the logs. Throws log::BadInput.
void open_standard_input(const std::vector<std::string>& logs);

/// Adds the options of all subcommands that read logs: LOG..., --recorded-scale, --role, --as,
/// --ranks, --lines and --threads.
void add_logs(Command& command, LogOptions& options);
/// Adds the options of add_logs() without LOG.
void add_reading(Command& command, LogOptions& options);
/// Adds --lr.
void add_learning_rate(Command& command, LogOptions& options);
/// Adds --step and --tensor.
void add_steps_and_tensors(Command& command, LogOptions& options);
/// Default of --format: FP16, or the format that the run computed in (FP16 or BF16).
enum class FormatDefault : std::uint8_t { binary16, of_run };
void add_format(Command& command, LogOptions& options, FormatDefault without);
/// Adds the selection options of `analyze`: scale, format, subnormals, steps, tensors.
void add_selections(Command& command, LogOptions& options,
                    FormatDefault without = FormatDefault::binary16);

/// Return the selection and the target format that the options describe. Throw BadUsage.
analyzers::frames::Selection selection_of(const LogOptions& options);
analyzers::underflow::Target target_of(const LogOptions& options);

/// Reads and analyses the logs, with a progress bar on a terminal. Stores the notes for
/// print_notes(). Throws BadUsage and log::BadInput.
analyzers::Findings run_analysis(const LogOptions& options);

/// Returns the text with A to Z converted to a to z.
std::string lower_case(std::string_view text);

/// Parses a positive finite number, or 2^K. Throws BadUsage, whose message names the option.
double parse_scale(std::string_view option, const std::string& text);
/// Parses a scale for training: as parse_scale(), but it must be a normal binary32 number.
double parse_training_scale(std::string_view option, const std::string& text);

/// Adds --policy, which may be repeated.
void add_policy_choice(Command& command, std::vector<std::string>& policies);
/// Parses a policy with settings. Throws BadUsage, whose message names the option.
policy::Policy parse_policy(const std::string& text, std::string_view option = "--policy");

/// Adds --headroom, --target-underflow and the limits of negligible and serious loss. The parser
/// checks the range of each.
void add_targets(Command& command, analyzers::underflow::RecommendOptions& options);
/// Throws BadUsage if the limit of serious loss is below that of negligible loss.
void require_sense(const analyzers::underflow::RecommendOptions& options);

/// Adds --recipe.
void add_recipes(Command& command, LogOptions& options);
/// Returns the passes with those of --recipe. Throws BadUsage.
analyzers::Passes passes_of(const LogOptions& options);
/// Adds --enough-snr, the noise limit for formats that fit a tensor.
void add_enough_snr(Command& command, analyzers::Passes& passes);

}  // namespace halfscope::cli::options
