// SPDX-License-Identifier: Apache-2.0
// `halfscope report`: everything on one page that works from disk.
#include <fmt/format.h>

#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/options/common.hpp"
#include "cli/options/exit.hpp"
#include "reports/page/page.hpp"

namespace halfscope::cli {
namespace {

struct Options : LogOptions {
  std::string out, title;
  analyzers::RecommendOptions recommend;
  std::vector<std::string> policies;
};

/// The last two parts of each log's path: the last alone is often just "log".
std::string title_of(const std::vector<std::string>& logs) {
  std::string title;
  for (const std::string& log : logs) {
    const auto path = std::filesystem::weakly_canonical(log);
    title +=
        (title.empty() ? "" : ", ") + (path.parent_path().filename() / path.filename()).string();
  }
  return title;
}

int run(Options options) {
  require_no_input(options.out, options);
  reports::require_charts();  // before the log is read
  options.passes = {.updates = true, .what_if = true, .formats = true, .sums = true};
  analyzers::PolicyOptions replay;
  replay.targets = options.recommend;
  for (const std::string& text : options.policies) replay.policies.push_back(parse_policy(text));
  analyzers::LogSeries series;
  analyzers::Analysis analysis = run_analysis(options, &series);
  analyzers::Study study = analyzers::study(std::move(analysis), selection_of(options),
                                            options.recommend, std::move(series));
  analyzers::add_policies(study, replay);
  const std::string title = options.title.empty() ? title_of(options.logs) : options.title;
  reports::write_report(study, title, options.out);
  fmt::print("{}\n", std::filesystem::absolute(options.out).string());
  return kFine;
}

}  // namespace

void add_report(Parser& parser) {
  Command command = parser.add(
      "report",
      "One HTML page with histograms, heat maps and the recommendation; needs no network");
  const auto options = std::make_shared<Options>();
  add_logs(command, *options);
  add_selections(command, *options, FormatDefault::of_run);
  add_targets(command, options->recommend);
  command.option("--out", options->out, "the page").type("FILE").required();
  command.option("--title", options->title, "title of the page; default: the log's name").type("T");
  add_policy_choice(command, options->policies);
  command.footer("Example:  halfscope report runs/mnist --out report.html");
  command.runs([options] { return run(*options); });
}

}  // namespace halfscope::cli
