// SPDX-License-Identifier: Apache-2.0
// `halfscope compare`: two runs, tensor by tensor.
#include "analyzers/compare/compare.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <stdexcept>

#include "cli/commands/commands.hpp"
#include "cli/gates/gate.hpp"
#include "cli/gates/junit.hpp"
#include "cli/options/common.hpp"
#include "cli/options/notes.hpp"
#include "cli/options/output.hpp"
#include "cli/terminal/text_answer.hpp"
#include "reports/answer/comparison.hpp"
#include "reports/export/json.hpp"
#include "reports/page/page.hpp"

namespace halfscope::cli::commands {
namespace {

using analyzers::compare::Both;
using analyzers::compare::Comparison;
using analyzers::frames::Selection;

struct CompareOptions : options::LogOptions {
  std::string json, out, title;
  std::optional<std::string> sums;
  gates::GateOptions gate;
};

std::optional<analyzers::compare::OrderAsked> sums_of(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  try {
    return reports::answer::order_called(*text);
  } catch (const std::invalid_argument& e) {
    throw options::BadUsage(fmt::format("--sums: {}", e.what()));
  }
}

/// Parses "S" for both runs, or "S,T": S for the first run, T for the second.
Both<std::string> recorded_scales(const std::string& text) {
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos) return {text, text};
  return {text.substr(0, comma), text.substr(comma + 1)};
}

Selection selection_of_run(const CompareOptions& options, const std::string& recorded_scale) {
  options::LogOptions of_run = options;
  of_run.recorded_scale = recorded_scale;
  if (options.loss_scale == "own") of_run.loss_scale = "1";
  Selection selection = options::selection_of(of_run);
  selection.at_run_scale = options.loss_scale == "own";
  return selection;
}

Comparison run_comparison(const CompareOptions& options) {
  const Both<std::string> scales = recorded_scales(options.recorded_scale);
  const Both<Selection> selections = {selection_of_run(options, scales.a),
                                      selection_of_run(options, scales.b)};
  options::open_standard_input(options.logs);
  options::Progress bar("reading");
  const auto progress = [&](std::uint64_t done, std::uint64_t all) { bar.show(done, all); };
  Comparison comparison = analyzers::compare::compare_logs(options.logs[0], options.logs[1],
                                                           options::target_of(options), selections,
                                                           sums_of(options.sums), progress);
  bar.clear();
  options::note_later(comparison.notes);
  return comparison;
}

int run(const CompareOptions& options) {
  options::require_own_files({options.json, options.out, options.gate.junit}, options);
  sums_of(options.sums);  // fails before the logs are read
  options::require_ending(options.out, {".html", ".htm"});
  if (!options.out.empty()) reports::page::require_charts();  // fails before the logs are read
  const auto conditions =
      gates::parse_conditions(options.gate, analyzers::gates::Subject::comparison);
  const Comparison comparison = run_comparison(options);
  const gates::GateTests gate = gates::test_conditions(conditions, comparison);
  if (!options.json.empty()) {
    options::write_output(
        options.json, reports::exports::json_text(reports::exports::to_json(comparison)) + "\n");
  }
  if (!options.out.empty()) {
    const std::string title = options.title.empty() ? "Two runs compared" : options.title;
    reports::page::write_compare_page(comparison, title, options.out);
  }
  gates::write_junit(options.gate.junit, "compare", gate);
  if (options.json != "-") fmt::print("{}", terminal::comparison_text(comparison));
  return gates::close_gate(gate);
}

void add_outputs(options::Command& command, CompareOptions& options) {
  command.option("--json", options.json, "write all numbers as JSON; - for stdout").type("FILE");
  command.option("--out", options.out, "write a page with charts and all tensors").type("FILE");
  command.option("--title", options.title, "title of the page").type("T");
  gates::add_gate(command, options.gate);
}

}  // namespace

void add_compare(options::Parser& parser) {
  options::Command command = parser.add(
      "compare", "Two runs tensor by tensor: FP32 against FP16, before against after a loss scale");
  const auto options = std::make_shared<CompareOptions>();
  command
      .option("RUN", options->logs,
              "two runs, A then B: run log folders, folders of tensor files, or .safetensors, "
              ".npy, .npz files; - for standard input")
      .rewrite(options::standard_input_once())
      .required()
      .values(2);
  options::add_reading(command, *options);
  options::add_selections(command, *options, options::FormatDefault::of_run);
  command.known("--format")
      .help(
          "format that values are rounded to (default: bfloat16 if a run computed in it and "
          "neither run in FP16, else binary16)");
  options->loss_scale = "own";
  command.known("--loss-scale")
      .help("count for S times the unscaled values in both runs; 'own' uses each step's own scale")
      .show_default();
  command.known("--recorded-scale")
      .type("S[,T]")
      .help(
          "loss scale that the recorded values carry, if the logs do not say: first of A, then of "
          "B");
  command
      .option("--sums", options->sums,
              "the elements of both runs are the same sums of K addends in format F, added in "
              "different orders: is each difference rounding, or a bug?")
      .type("length=K,format=F[,magnitudes=TENSOR]");
  add_outputs(command, *options);
  command.footer(
      "Example:  halfscope compare runs/fp32 runs/fp16\n"
      "          halfscope compare runs/before runs/after --out compare.html");
  command.runs([options] { return run(*options); });
}

}  // namespace halfscope::cli::commands
