// SPDX-License-Identifier: Apache-2.0
#include "cli/options/common.hpp"

#include <fmt/format.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "analyzers/readers/input/standard_input.hpp"
#include "analyzers/readers/lines/pattern.hpp"
#include "cli/options/notes.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/number/format_names.hpp"
#include "reports/answer/policy_paste.hpp"

namespace halfscope::cli::options {
namespace {

using analyzers::frames::Selection;
using analyzers::readers::input::kStandardInput;

template <typename T>
bool parse_whole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

std::int64_t parse_step(std::string_view text, std::int64_t if_missing) {
  std::int64_t step = if_missing;
  if (!text.empty() && !parse_whole(text, step)) {
    throw BadUsage(
        fmt::format("--step: found '{}', expected a step number N, or A:B where A or B may be "
                    "missing (B itself is not included)",
                    text));
  }
  return step;
}

/// Parses "N", "A:B", "A:" or ":B"; half-open.
void parse_steps(const std::string& text, Selection& selection) {
  if (text.empty()) return;
  const std::size_t colon = text.find(':');
  selection.first_step = parse_step(text.substr(0, colon), selection.first_step);
  if (colon == std::string::npos) {
    selection.end_step = selection.first_step + 1;
  } else {
    selection.end_step = parse_step(text.substr(colon + 1), selection.end_step);
  }
  if (selection.end_step <= selection.first_step) {
    throw BadUsage(fmt::format("--step: '{}' selects no step; A:B goes from A to the step before B",
                               log::printable(text)));
  }
}

std::pair<std::string, log::Role> parse_role(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  const auto role =
      equals == std::string::npos ? std::nullopt : log::find_role(text.substr(equals + 1));
  if (!role) {
    throw BadUsage(
        fmt::format("--role: found '{}', expected GLOB=ROLE with a role of weight_grad, "
                    "activation_grad, local_weight_grad, activation, weight, weight_after, "
                    "master_weight, update, optimizer_state, loss",
                    text));
  }
  return {text.substr(0, equals), *role};
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

namespace {

/// Replaces a format's alias by its name. Returns an error message, or an empty string.
std::string to_format_name(std::string& name) {
  if (const NamedFormat* const format = format_called(name)) {
    name = format->name;
    return "";
  }
  return fmt::format("format '{}' is {}", log::printable(name), why_no_format(name));
}

/// Converts "0.1%" to the decimal "0.1e-2".
std::string percent_to_share(std::string& text) {
  if (!text.ends_with('%') || text.find_first_of("eE") != std::string::npos) return "";
  text.pop_back();
  text += "e-2";
  return "";
}

}  // namespace

std::function<std::string(std::string&)> standard_input_once() {
  const auto typed = std::make_shared<bool>(false);
  return [typed](std::string& log) -> std::string {
    if (log == kStandardInput) log = "./" + log;  // a file with this name
    if (log != "-") return "";
    if (std::exchange(*typed, true)) return "'-' (standard input) can be given only once";
    log = kStandardInput;
    return "";
  };
}

void open_standard_input(const std::vector<std::string>& logs) {
  if (std::find(logs.begin(), logs.end(), kStandardInput) != logs.end()) {
    analyzers::readers::input::take_standard_input();
  }
}

void add_logs(Command& command, LogOptions& options) {
  command
      .option("LOG", options.logs,
              "run log folders, tensor files, folders of tensor files, or other tools' logs "
              "(docs/logs.md), compressed or not; - for standard input; several logs are reported "
              "separately")
      .rewrite(standard_input_once())
      .required();
  add_reading(command, options);
}

namespace {

/// Adds --lines, the pattern for lines of console logs.
void add_console_lines(Command& command, LogOptions& options) {
  command
      .whole_number(
          "--ranks", [&options](unsigned ranks) { options.ranks = ranks; },
          "number of processes that print each message into a console log, if lines do not name "
          "their process (default: estimated from equal lines)")
      .type("N")
      .within(1u, 1000000u);
  command
      .option("--lines", options.lines,
              "a pattern for lines of a console log that are not read by themselves, such as 'iter "
              "{step}: loss {loss}, scale {loss_scale}'. Names in braces stand for values: " +
                  analyzers::readers::lines::pattern_names() +
                  "; {} for any text; {{ and }} for braces of the line")
      .type("PATTERN");
}

}  // namespace

void add_reading(Command& command, LogOptions& options) {
  command
      .option("--recorded-scale", options.recorded_scale,
              "loss scale that the recorded values carry, if the log does not say: a number, 2^K, "
              "or the name of the log's scalar that has it for each step")
      .type("S|TAG");
  command
      .option("--role", options.roles,
              "role of the tensors whose name matches; the first match counts")
      .type("GLOB=ROLE")
      .repeatable();
  command
      .option("--as", options.read_as,
              "dtype of 2-byte NPY elements that have no type (V2, as bfloat16 is saved) or are "
              "integers (u2): bf16 (bfloat16) or f16 (float16, fp16)")
      .type("DTYPE")
      .one_of_any_case({"bf16", "bfloat16", "f16", "float16", "fp16"});
  add_console_lines(command, options);
  const auto limit = [&options](unsigned threads) {
    options.thread_limit = std::make_shared<tbb::global_control>(
        tbb::global_control::max_allowed_parallelism, threads);
  };
  command
      .whole_number(
          "--threads", limit,
          "at most N threads, 1 to 4096; results are the same for any number (default: all "
          "cores)")
      .type("N")
      .within(1u, 4096u);
}

void add_steps_and_tensors(Command& command, LogOptions& options) {
  command.option("--step", options.steps, "steps A to B, B not included; or one step N")
      .type("A:B");
  command.option("--tensor", options.tensor, "only tensors whose name matches").type("GLOB");
}

void add_policy_choice(Command& command, std::vector<std::string>& policies) {
  command
      .option("--policy", policies,
              "a loss-scaling policy, with settings by its framework's names; repeatable (default: "
              "all). Every policy accepts growth_interval and initial_scale")
      .type("NAME[,KEY=VALUE...]")
      .repeatable();
}

policy::Policy parse_policy(const std::string& text, std::string_view option) {
  try {
    return reports::answer::policy_called(text);
  } catch (const std::invalid_argument& e) {
    throw BadUsage(fmt::format("{}: {}; 'halfscope policies --list' shows all with their defaults",
                               option, e.what()));
  }
}

void add_targets(Command& command, analyzers::underflow::RecommendOptions& options) {
  command
      .option("--headroom", options.headroom_bits,
              "binades kept free between the largest gradient and overflow, 0 to 40")
      .type("BITS")
      .within(0, 40)
      .show_default();
  command
      .option("--target-underflow", options.target_underflow,
              "share of a tensor's nonzero values that may be flushed to zero, such as 0.001 or "
              "0.1%")
      .type("FRACTION")
      .rewrite(percent_to_share)
      .within(0.0, 1.0)
      .show_default();
  command
      .option("--negligible-loss", options.negligible_loss,
              "share of the gradients' sum of squares (L2) that may become zero without harm")
      .type("FRACTION")
      .rewrite(percent_to_share)
      .within(0.0, 1.0)
      .show_default();
  command
      .option("--serious-loss", options.serious_loss,
              "the same share, from which a loss is serious")
      .type("FRACTION")
      .rewrite(percent_to_share)
      .within(0.0, 1.0)
      .show_default();
}

void require_sense(const analyzers::underflow::RecommendOptions& options) {
  if (options.serious_loss >= options.negligible_loss) return;
  throw BadUsage(
      fmt::format("--serious-loss is {:g}, below --negligible-loss {:g}; make it at least that",
                  options.serious_loss, options.negligible_loss));
}

void add_enough_snr(Command& command, analyzers::Passes& passes) {
  command
      .option("--enough-snr", passes.sufficient_snr_db,
              "signal-to-quantisation-noise ratio, in dB, from which on a tensor fits a format")
      .type("DB")
      .within(0.0, 300.0)
      .show_default();
}

void add_format(Command& command, LogOptions& options, FormatDefault without) {
  const std::string what = "format that values are rounded to: " + format_names();
  if (without == FormatDefault::of_run) {
    options.format.clear();
    command
        .option("--format", options.format,
                what + "; default: the format that the run computed in, FP16 or BF16")
        .type("NAME")
        .rewrite(to_format_name);
    return;
  }
  command.option("--format", options.format, what)
      .type("NAME")
      .rewrite(to_format_name)
      .show_default();
}

void add_selections(Command& command, LogOptions& options, FormatDefault without) {
  command
      .option("--loss-scale", options.loss_scale,
              "what if: count for S times the unscaled values (a number or 2^K)")
      .type("S")
      .show_default();
  add_format(command, options, without);
  command
      .option("--subnormals", options.subnormals,
              "subnormals of the format: keep them, or flush to zero what is tiny after rounding "
              "(as x86), tiny before rounding (as ARM), or has a subnormal result")
      .one_of(words_of(kSubnormals, &NamedSubnormals::name))
      .show_default();
  add_learning_rate(command, options);
  add_steps_and_tensors(command, options);
}

void add_learning_rate(Command& command, LogOptions& options) {
  command
      .option("--lr", options.learning_rate,
              "learning rate of plain SGD, if the log does not say; updates are then -X times the "
              "gradients")
      .type("X");
}

double parse_scale(std::string_view option, const std::string& text) {
  double scale = 0;
  int exponent = 0;
  const bool power =
      text.starts_with("2^") && parse_whole(std::string_view(text).substr(2), exponent);
  if (power) scale = std::ldexp(1.0, exponent);
  if ((!power && !parse_whole(text, scale)) || !(scale > 0) || !std::isfinite(scale)) {
    throw BadUsage(fmt::format("{}: found '{}', expected a positive number such as 1024 or 2^10",
                               option, log::printable(text)));
  }
  return scale;
}

namespace {

/// Returns true if the text is meant as a number, valid or not; otherwise it is a name.
bool is_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return (error != std::errc::invalid_argument && end == text.data() + text.size()) ||
         text.starts_with("2^");
}

}  // namespace

double parse_training_scale(std::string_view option, const std::string& text) {
  const double scale = parse_scale(option, text);
  if (analyzers::frames::usable_scale(scale)) return scale;
  throw BadUsage(
      fmt::format("{}: found '{}', expected a positive normal binary32 number; training cannot use "
                  "any other scale",
                  option, log::printable(text)));
}

Selection selection_of(const LogOptions& options) {
  Selection selection;
  selection.loss_scale = parse_scale("--loss-scale", options.loss_scale);
  if (is_number(options.recorded_scale)) {
    selection.recorded_scale = parse_training_scale("--recorded-scale", options.recorded_scale);
  } else if (!options.recorded_scale.empty()) {
    selection.scale_tag = options.recorded_scale;
  }
  if (!options.read_as.empty()) {
    selection.read_as = options.read_as.starts_with("bf") ? Dtype::bf16 : Dtype::f16;
  }
  if (!options.learning_rate.empty()) {
    selection.learning_rate = parse_scale("--lr", options.learning_rate);
  }
  if (!options.tensor.empty()) selection.tensor_glob = options.tensor;
  selection.ranks = options.ranks;
  selection.lines = options.lines;
  parse_steps(options.steps, selection);
  for (const std::string& role : options.roles) selection.roles.push_back(parse_role(role));
  return selection;
}

analyzers::underflow::Target target_of(const LogOptions& options) {
  const Subnormals subnormals = *find_subnormals(options.subnormals);
  if (options.format.empty()) return {.subnormals = subnormals, .by_default = true};
  const NamedFormat& format = *find_format(options.format);
  return {format.name, format.format, subnormals};
}

analyzers::Findings run_analysis(const LogOptions& options) {
  open_standard_input(options.logs);
  const std::vector<std::filesystem::path> logs(options.logs.begin(), options.logs.end());
  std::optional<Progress> bar;  // one for each phase
  const auto phases = [&bar](const std::string& what) {
    bar.reset();  // removes the old bar before the new one appears
    bar.emplace(what);
    return [&bar](std::uint64_t done, std::uint64_t all) { bar->show(done, all); };
  };
  analyzers::Findings found = analyzers::analyze(logs, target_of(options), selection_of(options),
                                                 passes_of(options), phases);
  bar.reset();
  note_later(found.analysis.notes);
  return found;
}

}  // namespace halfscope::cli::options
