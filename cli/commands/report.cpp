// SPDX-License-Identifier: Apache-2.0
// `halfscope report`: all results as one HTML page that works offline, or the answer as Markdown.
#include <fmt/format.h>

#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/options/common.hpp"
#include "cli/options/output.hpp"
#include "reports/markdown/markdown.hpp"
#include "reports/page/page.hpp"

namespace halfscope::cli::commands {
namespace {

struct ReportOptions : options::LogOptions {
  std::string out, title;
  analyzers::underflow::RecommendOptions recommend;
  std::vector<std::string> policies;
};

/// Returns the last two parts of each log's path; the last part alone is often just "log".
std::string title_of(const std::vector<std::string>& logs) {
  std::string title;
  for (const std::string& log : logs) {
    const auto path = std::filesystem::weakly_canonical(log);
    title +=
        (title.empty() ? "" : ", ") + (path.parent_path().filename() / path.filename()).string();
  }
  return title;
}

int run(ReportOptions options) {
  options::require_sense(options.recommend);
  options::require_own_files({options.out}, options);
  const bool markdown =
      options::require_ending(options.out, {".html", ".htm", ".md", ".markdown"}) >= 2;
  if (!markdown) reports::page::require_charts();  // fails before the log is read
  const double sufficient_snr_db = options.passes.sufficient_snr_db;
  options.passes = analyzers::report_passes();
  options.passes.sufficient_snr_db = sufficient_snr_db;
  analyzers::replay::PolicyOptions replay;
  for (const std::string& text : options.policies) {
    replay.policies.push_back(options::parse_policy(text));
  }
  const analyzers::Study study = analyzers::study(
      options::run_analysis(options), options::selection_of(options), options.recommend, replay);
  const std::string title = options.title.empty() ? title_of(options.logs) : options.title;
  if (markdown) {
    options::write_output(options.out, reports::markdown::report_markdown(study, title));
  } else {
    reports::page::write_report(study, title, options.out);
  }
  fmt::print("{}\n", std::filesystem::absolute(options.out).string());
  return options::kFine;
}

}  // namespace

void add_report(options::Parser& parser) {
  options::Command command = parser.add(
      "report",
      "One HTML page with histograms, heat maps and the recommendation; needs no network. Or the "
      "same answer as Markdown");
  const auto options = std::make_shared<ReportOptions>();
  options::add_logs(command, *options);
  options::add_selections(command, *options, options::FormatDefault::of_run);
  options::add_targets(command, options->recommend);
  options::add_recipes(command, *options);
  options::add_enough_snr(command, options->passes);
  command
      .option("--out", options->out, "the page; Markdown without charts where the name ends in .md")
      .type("FILE")
      .required();
  command.option("--title", options->title, "title of the page; default: the log's name").type("T");
  options::add_policy_choice(command, options->policies);
  command.footer(
      "Example:  halfscope report runs/mnist --out report.html\n"
      "          halfscope report runs/mnist --out report.md");
  command.runs([options] { return run(*options); });
}

}  // namespace halfscope::cli::commands
