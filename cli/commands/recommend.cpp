// SPDX-License-Identifier: Apache-2.0
// `halfscope recommend`: the loss scale to use, and why.
#include "analyzers/recommend/recommend.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>

#include "analyzers/study.hpp"
#include "cli/commands/commands.hpp"
#include "cli/gates/gate.hpp"
#include "cli/gates/junit.hpp"
#include "cli/options/common.hpp"
#include "cli/options/progress.hpp"
#include "cli/terminal/text_advice.hpp"
#include "cli/terminal/text_answer.hpp"
#include "cli/terminal/text_cures.hpp"
#include "cli/terminal/text_gaps.hpp"
#include "cli/terminal/text_overflow.hpp"
#include "cli/terminal/text_timeline.hpp"
#include "cli/terminal/text_updates.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/snippets.hpp"
#include "reports/answer/summary.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/update_sums.hpp"
#include "reports/export/json.hpp"

namespace halfscope::cli::commands {
namespace {

using analyzers::recommend::Recommendation;
namespace text = reports::answer;

struct Options : options::LogOptions {
  std::string framework;
  analyzers::underflow::RecommendOptions recommend;
  std::string json, junit;
  std::vector<std::string> fail_if;
};

/// The lines of one framework, indented, between empty lines; empty where there are none.
std::string snippet_text(const analyzers::Study& study, const std::string& framework) {
  const std::vector<text::Snippet> all = text::snippets(study);
  const text::Snippet* const snippet = text::snippet_of(all, study, framework);
  if (snippet == nullptr) return "";
  std::string out;
  for (const char c : snippet->first().lines) {
    out += c;
    if (c == '\n') out += "  ";
  }
  if (snippet->framework != "pytorch") {
    out += fmt::format("\n\n{}: {}", snippet->label, snippet->first().note);
  }
  return fmt::format("\n  {}\n\n", out);
}

/// A step's NaN or infinity that no event tells.
std::string nonfinite_text(const analyzers::Study& study) {
  const auto& steps = study.advice.nonfinite_steps;
  const bool told = std::any_of(study.overflow.events.begin(), study.overflow.events.end(),
                                [](const auto& event) { return !event.what_if; });
  if (steps.empty() || told) return "";
  return fmt::format("Gradients hold NaN or infinity at {}, first at step {}.\n",
                     text::plural(steps.size(), "step"), steps.front());
}

/// The answer, then what harms, then the evidence.
void print(const analyzers::Study& study, const Options& options) {
  const Recommendation& r = study.advice;
  const std::string kept = text::kept_narrow_text(study);
  const std::string updates = kept.empty() ? "" : kept + "\n";
  const bool first = text::lost_updates_first(study);
  const std::string fine = text::default_fine_text(study);
  fmt::print("{}{}{}{}{}", first ? updates : "", terminal::answer_text(study), first ? "" : updates,
             fine, fine.empty() ? "" : "\n");
  fmt::print("{}", snippet_text(study, options.framework));
  fmt::print("{}{}", nonfinite_text(study), terminal::cures_text(r));
  fmt::print("{}{}", terminal::evidence_text(study, options.recommend.target_underflow),
             terminal::advice_text(r));
  fmt::print("{}", terminal::updates_line(study));
  fmt::print("{}", terminal::overflow_text(study.analysis, study.overflow));
  const std::string timeline = terminal::timeline_text(study);
  fmt::print("{}{}{}", timeline.empty() ? "" : "\n", timeline, terminal::gaps_text(study.analysis));
}

int run(const Options& options) {
  options::require_no_input(options.json, options);
  gates::require_junit_sense(options.junit, options.fail_if, options);
  const auto conditions =
      gates::parse_conditions(options.fail_if, analyzers::gates::Subject::recommendation);
  const analyzers::Study study = analyzers::study(
      options::run_analysis(options), options::selection_of(options), options.recommend);
  const gates::GateLines gate = gates::test_conditions(conditions, study.advice);
  if (!options.json.empty()) {
    const auto json = reports::exports::to_json(study);
    options::write_output(options.json, reports::exports::json_text(json) + "\n");
  }
  gates::write_junit(options.junit, "recommend", gate);
  if (options.json != "-") {
    print(study, options);
  }
  return gates::close_gate(gate);
}

}  // namespace

void add_recommend(options::Parser& parser) {
  options::Command command =
      parser.add("recommend", "The loss scale to use, the line to paste, and why");
  const auto options = std::make_shared<Options>();
  options->passes.sums = true;
  options->passes.series = true;
  options->passes.updates = true;
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
  command.option("--json", options->json, "write the recommendation as JSON; - for stdout")
      .type("FILE");
  gates::add_fail_if(command, options->fail_if);
  gates::add_junit(command, options->junit);
  command.footer(
      "Example:  halfscope recommend runs/mnist --headroom 2\n"
      "          halfscope recommend runs/mnist --fail-if 'lowest > 1024'");
  command.runs([options] { return run(*options); });
}

}  // namespace halfscope::cli::commands
