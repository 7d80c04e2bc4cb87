// SPDX-License-Identifier: Apache-2.0
// `halfscope analyze`: what rounding to a format does to every tensor of a log.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "cli/command.hpp"
#include "cli/common.hpp"
#include "cli/gate.hpp"
#include "cli/junit.hpp"
#include "cli/text_formats.hpp"
#include "cli/text_updates.hpp"
#include "halfscope/log/error.hpp"
#include "reports/csv.hpp"
#include "reports/json.hpp"
#include "reports/text.hpp"

namespace halfscope::cli {
namespace {

using analyzers::Analysis;
using analyzers::TensorFindings;
namespace text = reports;

struct Options : LogOptions {
  std::string json, csv, junit;
  std::vector<std::string> fail_if;
};

double flushed_share(const TensorFindings& t) {
  const std::uint64_t n = t.counts.finite_nonzero();
  return n == 0
             ? 0.0
             : static_cast<double>(t.counts.classes.flushed_to_zero.high) / static_cast<double>(n);
}

bool acts_on_any(const Analysis& analysis) {
  return std::any_of(analysis.tensors.begin(), analysis.tensors.end(),
                     [](const auto& t) { return t.counted; });
}

/// What a person wants to see: the gradients first; what carries no loss scale only without one.
std::vector<const TensorFindings*> shown_tensors(const Analysis& analysis) {
  std::vector<const TensorFindings*> order;
  const bool gradients_only = analysis.loss_scale != 1 && acts_on_any(analysis);
  for (const TensorFindings& t : analysis.tensors) {
    if (t.counted || !gradients_only) order.push_back(&t);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    if (a->counted != b->counted) return a->counted;
    return flushed_share(*a) > flushed_share(*b);
  });
  return order;
}

/// Of the gradients where there are any, else of everything.
void print_summary(const Analysis& analysis) {
  std::uint64_t n = 0, tensors = 0;
  Classes sum;
  const bool gradients = acts_on_any(analysis);
  for (const TensorFindings& t : analysis.tensors) {
    if (gradients && !t.counted) continue;
    ++tensors;
    n += t.counts.finite_nonzero();
    sum += t.counts.classes;
  }
  fmt::print(
      "In {} at loss scale {}, of {} finite nonzero {} in {}:\n"
      "  {} become zero, {} subnormal, {} overflow.\n\n",
      analysis.target.name, text::scale_text(analysis.loss_scale), text::count_text(n),
      gradients ? "gradient values" : "values", text::plural(tensors, "tensor"),
      text::share_text(sum.flushed_to_zero, n), text::share_text(sum.subnormal, n),
      text::share_text(sum.overflow, n));
}

void print_row(const TensorFindings& t) {
  const std::uint64_t n = t.counts.finite_nonzero();
  const Classes& c = t.counts.classes;
  fmt::print("{:>14} {:>14} {:>12} {:>12} {:>10} {:>9}  {}{}\n",
             text::share_text(c.flushed_to_zero, n), text::share_text(c.subnormal, n),
             text::share_text(c.overflow, n), text::share_text(t.counts.zero, t.counts.total),
             t.max_abs ? fmt::format("2^{:.1f}", std::log2(*t.max_abs)) : "none",
             t.counts.nan + t.counts.inf, log::printable(t.name),
             t.underflow_identifiable ? "" : "  (computed in FP16: zeros may be underflow)");
}

/// Worst first; a screenful.
void print_table(const Analysis& analysis) {
  constexpr std::size_t kShown = 25;
  const std::vector<const TensorFindings*> order = shown_tensors(analysis);
  fmt::print("{:>14} {:>14} {:>12} {:>12} {:>10} {:>9}  {}\n", "become zero", "subnormal",
             "overflow", "zero already", "largest", "NaN, inf", "tensor");
  for (std::size_t i = 0; i < std::min(kShown, order.size()); ++i) print_row(*order[i]);
  if (order.size() > kShown) {
    fmt::print("and {} more; --json - or --csv - gives all\n", order.size() - kShown);
  }
  if (order.size() < analysis.tensors.size()) {
    fmt::print("Not shown: {} of other roles, on which no loss scale acts.\n",
               text::plural(analysis.tensors.size() - order.size(), "tensor"));
  }
}

int run(const Options& options) {
  if (options.json == "-" && options.csv == "-") {
    throw BadUsage("--json - and --csv - both want stdout; give one of them a file");
  }
  require_no_input(options.json, options);
  require_no_input(options.csv, options);
  require_junit_sense(options.junit, options.fail_if, options);
  const auto conditions = parse_conditions(options.fail_if, analyzers::Subject::tensor);
  const Analysis analysis = run_analysis(options);
  const GateLines gate = test_conditions(conditions, analysis);
  if (!options.csv.empty()) write_output(options.csv, reports::to_csv(analysis));
  if (!options.json.empty()) {
    write_output(options.json, reports::json_text(reports::to_json(analysis)) + "\n");
  }
  write_junit(options.junit, "analyze", gate);
  if (options.json != "-" && options.csv != "-") {
    print_summary(analysis);
    print_table(analysis);
    const std::string updates = updates_text(analysis);
    if (!updates.empty()) fmt::print("\n{}", updates);
    if (updates.empty() && options.passes.what_if) {
      fmt::print(
          "\n--what-if: no weight updates are known (docs/json.md says from what they are).\n");
    }
    if (options.passes.formats) {
      fmt::print("\n{}", formats_text(analysis, analyzers::FitOptions().target_underflow));
    }
  }
  return close_gate(gate);
}

}  // namespace

void add_analyze(CLI::App& app, Run& run_out) {
  CLI::App* command = app.add_subcommand(
      "analyze",
      "Count, per tensor and step, what rounding to a 16- or 8-bit format does to a log");
  const auto options = std::make_shared<Options>();
  options->passes.updates = true;
  add_logs(*command, *options);
  add_selections(*command, *options);
  command->add_option("--json", options->json, "write all numbers as JSON; - for stdout")
      ->type_name("FILE");
  command->add_option("--csv", options->csv, "write counts per tensor and step; - for stdout")
      ->type_name("FILE");
  command->add_flag("--what-if", options->passes.what_if,
                    "also say what FP32 master weights, BF16, another learning rate, stochastic "
                    "rounding and Kahan's compensation would do to weight updates; slower");
  command->add_flag("--formats", options->passes.formats,
                    "also ask about every other format, FP8 and MX among them: which is the "
                    "narrowest each tensor fits, at which scale, and with how much noise; slower");
  add_fail_if(*command, options->fail_if);
  add_junit(*command, options->junit);
  command->footer(
      "Example:  halfscope analyze runs/mnist --loss-scale 1024 --tensor 'weight_grad/*'\n"
      "          halfscope analyze runs/mnist --fail-if 'flushed_to_zero > 0.1% for weight_grad'");
  command->callback([options, &run_out] { run_out = [options] { return run(*options); }; });
}

}  // namespace halfscope::cli
