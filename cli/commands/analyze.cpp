// SPDX-License-Identifier: Apache-2.0
// `halfscope analyze`: what rounding to a format does to every tensor of a log.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/gates/gate.hpp"
#include "cli/gates/junit.hpp"
#include "cli/options/common.hpp"
#include "cli/options/output.hpp"
#include "cli/terminal/text_answer.hpp"
#include "cli/terminal/text_histogram.hpp"
#include "cli/terminal/text_table.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/claims.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/quantised.hpp"
#include "reports/answer/ranks.hpp"
#include "reports/answer/recipes.hpp"
#include "reports/answer/tensors.hpp"
#include "reports/answer/timeline.hpp"
#include "reports/answer/updates.hpp"
#include "reports/answer/weights.hpp"
#include "reports/export/csv.hpp"
#include "reports/export/json.hpp"

namespace halfscope::cli::commands {
namespace {

namespace text = reports::answer;
using analyzers::underflow::Analysis;

struct AnalyzeOptions : options::LogOptions {
  std::string json, csv;
  gates::GateOptions gate;
};

/// Returns why there are no weight updates, with --what-if or if the log has weights; else nothing.
std::string no_updates_text(const Analysis& analysis, bool what_if) {
  const std::string why = text::missing_updates_text(analysis);
  if (what_if) return fmt::format("--what-if: {}.\n", why);
  const bool recorded_weights =
      analysis.has_run_log() && analysis.target.format.width == 16 &&
      std::any_of(analysis.tensors().begin(), analysis.tensors().end(), [](const auto& t) {
        return t.role == log::Role::weight || t.role == log::Role::master_weight;
      });
  return recorded_weights ? fmt::format("Lost weight updates: {}.\n", why) : "";
}

void print(const analyzers::Findings& found, const AnalyzeOptions& options) {
  const Analysis& analysis = found.analysis;
  fmt::print("{}", text::first_text(found));
  std::string out;
  const auto add = [&out](const std::string& part) {
    if (!part.empty()) out += (out.empty() ? "" : "\n") + part;
  };
  add(terminal::section_text(text::recipes_section(found)));  // first, as it was asked for
  if (!analysis.tensors().empty()) add(terminal::tensors_text(found));
  const text::Table peaks = text::peaks_table(found);
  if (!peaks.empty()) add(terminal::table_text(peaks));
  add(terminal::sections_text(text::ranks_sections(found)));
  add(terminal::sections_text(text::quantised_sections(found)));
  add(terminal::sections_text(text::timeline_sections(found)));
  const text::Section updates = text::updates_section(analysis, text::all_tensors(analysis));
  add(updates.empty() ? no_updates_text(analysis, options.passes.what_if)
                      : terminal::section_text(updates));
  for (const auto& moved : found.movements) {
    add(terminal::sections_text(text::weights_sections(moved)));
  }
  add(terminal::section_text(text::claims_section(found.claims)));
  add(terminal::section_text(text::formats_section(found)));
  fmt::print("{}{}", out, terminal::gaps_text(analysis));
}

int run(const AnalyzeOptions& options) {
  options::require_own_files({options.json, options.csv, options.gate.junit}, options);
  const auto conditions = gates::parse_conditions(options.gate, analyzers::gates::Subject::tensor);
  const analyzers::Findings found = options::run_analysis(options);
  const gates::GateTests gate = gates::test_conditions(conditions, found);
  if (!options.csv.empty())
    options::write_output(options.csv, reports::exports::to_csv(found.analysis));
  if (!options.json.empty()) {
    options::write_pieces(options.json, [&found](const options::WriteText& write) {
      reports::exports::write_findings(found, write);
      write("\n");
    });
  }
  gates::write_junit(options.gate.junit, "analyze", gate);
  if (options.json != "-" && options.csv != "-") print(found, options);
  return gates::close_gate(gate);
}

}  // namespace

void add_analyze(options::Parser& parser) {
  options::Command command = parser.add(
      "analyze",
      "Count, per tensor and step, what rounding to a 16- or 8-bit format does to a log");
  const auto options = std::make_shared<AnalyzeOptions>();
  options->passes.updates = true;
  options::add_logs(command, *options);
  options::add_selections(command, *options);
  command.option("--json", options->json, "write all numbers as JSON; - for stdout").type("FILE");
  command.option("--csv", options->csv, "write counts per tensor and step; - for stdout")
      .type("FILE");
  command.flag("--what-if", options->passes.what_if,
               "also show what FP32 master weights, BF16, another learning rate, stochastic "
               "rounding and Kahan summation would do to weight updates; slower");
  command.flag("--formats", options->passes.formats,
               "also test every other format, including FP8 and MX: the narrowest that each tensor "
               "fits, at which scale, and with how much noise; slower");
  options::add_recipes(command, *options);
  options::add_enough_snr(command, options->passes);
  gates::add_gate(command, options->gate);
  command.footer(
      "Example:  halfscope analyze runs/mnist --loss-scale 1024 --tensor 'weight_grad/*'\n"
      "          halfscope analyze runs/mnist --fail-if 'flushed_to_zero > 0.1% for weight_grad'");
  command.runs([options] {
    options->passes.needs_tensors = options->passes.what_if;
    return run(*options);
  });
}

}  // namespace halfscope::cli::commands
