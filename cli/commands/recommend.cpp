// SPDX-License-Identifier: Apache-2.0
// `halfscope recommend`: the loss scale to use, and why.
#include "analyzers/recommend/recommend.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/study.hpp"
#include "cli/commands/commands.hpp"
#include "cli/gates/gate.hpp"
#include "cli/gates/junit.hpp"
#include "cli/options/common.hpp"
#include "cli/options/notes.hpp"
#include "cli/options/output.hpp"
#include "cli/terminal/text_answer.hpp"
#include "cli/terminal/text_table.hpp"
#include "reports/answer/answer.hpp"
#include "reports/answer/overflow.hpp"
#include "reports/answer/quantised.hpp"
#include "reports/answer/snippets.hpp"
#include "reports/answer/timeline.hpp"
#include "reports/export/json.hpp"

namespace halfscope::cli::commands {
namespace {

namespace text = reports::answer;

struct RecommendOptions : options::LogOptions {
  std::string framework;
  analyzers::underflow::RecommendOptions recommend;
  std::string json;
  gates::GateOptions gate;
  bool details = false;
};

/// Returns how to see more. The command contains the log's name if a shell needs no quotes for it.
std::string more_text(const std::vector<std::string>& logs, bool has_values) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=,:@%";
  const bool typed =
      logs.size() == 1 && logs.front().find_first_not_of(kPlain) == std::string::npos;
  return fmt::format(
      "More: --details {}; halfscope report {} --out report.html writes a page.",
      has_values ? "shows the evidence" : "shows what the log lacks, and lines that record it",
      typed ? logs.front() : "LOG");
}

void print(const analyzers::Study& study, const RecommendOptions& options) {
  const text::Answer answer = text::answer_of(study, options.framework);
  const std::size_t columns = terminal::columns_of_stdout();
  if (!options.details) {
    fmt::print("{}", terminal::short_text(
                         answer, study, options.framework,
                         more_text(options.logs, !study.analysis.tensors().empty()), columns));
    return;
  }
  const text::Table headroom = text::headroom_table(study);
  std::vector<text::Section> quantised = text::quantised_sections(study);
  for (text::Section& section : quantised) section.pastes.clear();  // already in the answer
  std::string out = terminal::long_text(answer, study, options.framework, columns);
  for (const std::string& part :
       {terminal::sections_text(text::event_sections(study)),
        headroom.empty() ? "" : terminal::table_text(headroom), terminal::sections_text(quantised),
        terminal::sections_text(text::timeline_sections(study))}) {
    if (!part.empty()) out += "\n" + part;
  }
  fmt::print("{}{}", out, terminal::gaps_text(study.analysis));
}

int run(const RecommendOptions& options) {
  options::require_sense(options.recommend);
  options::require_own_files({options.json, options.gate.junit}, options);
  const auto conditions =
      gates::parse_conditions(options.gate, analyzers::gates::Subject::recommendation);
  const analyzers::Study study = analyzers::recommendation(
      options::run_analysis(options), options::selection_of(options), options.recommend);
  const gates::GateTests gate = gates::test_conditions(conditions, study);
  if (!options.json.empty()) {
    const auto json = reports::exports::to_json(study);
    options::write_output(options.json, reports::exports::json_text(json) + "\n");
  }
  gates::write_junit(options.gate.junit, "recommend", gate);
  if (options.json != "-") {
    print(study, options);
  }
  return gates::close_gate(gate);
}

}  // namespace

void add_recommend(options::Parser& parser) {
  options::Command command =
      parser.add("recommend", "The loss scale to use, the line to paste, and why");
  const auto options = std::make_shared<RecommendOptions>();
  options->passes = analyzers::recommend_passes();
  options::add_logs(command, *options);
  options::add_format(command, *options, options::FormatDefault::of_run);
  options::add_steps_and_tensors(command, *options);
  options::add_targets(command, options->recommend);
  command
      .option("--framework", options->framework,
              "whose lines to print (default: those of the run's own policy, else pytorch's); the "
              "JSON and the report have all")
      .type("NAME")
      .one_of(text::framework_names());
  command.flag("--details", options->details,
               "also print every finding, what the scale rests on, and what the log does not show");
  command.option("--json", options->json, "write the recommendation as JSON; - for stdout")
      .type("FILE");
  gates::add_gate(command, options->gate);
  command.footer(
      "Example:  halfscope recommend runs/mnist --headroom 2\n"
      "          halfscope recommend runs/mnist --fail-if 'lowest > 1024'");
  command.runs([options] { return run(*options); });
}

}  // namespace halfscope::cli::commands
