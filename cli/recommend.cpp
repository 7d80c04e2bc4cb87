// SPDX-License-Identifier: Apache-2.0
// `halfscope recommend`: the loss scale to use, and why.
#include "analyzers/recommend.hpp"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <utility>

#include "analyzers/study.hpp"
#include "cli/command.hpp"
#include "cli/common.hpp"
#include "cli/gate.hpp"
#include "cli/junit.hpp"
#include "cli/progress.hpp"
#include "cli/text_advice.hpp"
#include "cli/text_cures.hpp"
#include "cli/text_overflow.hpp"
#include "halfscope/log/error.hpp"
#include "reports/json.hpp"
#include "reports/json_parts.hpp"
#include "reports/snippets.hpp"
#include "reports/text.hpp"

namespace halfscope::cli {
namespace {

using analyzers::Recommendation;
namespace text = reports;

struct Options : LogOptions {
  std::string framework = "pytorch";
  analyzers::RecommendOptions recommend;
  std::string json, junit;
  std::vector<std::string> fail_if;
};

std::string share(const analyzers::Share& s) { return text::share_range_text(s.low(), s.high()); }

std::string join(const std::vector<std::string>& words) {
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : ", ") + log::printable(word);
  return all;
}

/// Why there is no recommendation, in words.
std::string reason_text(const Recommendation& r) {
  if (r.reason == "no_gradients") {
    return fmt::format(
        "the log holds no gradients (roles found: {}); name them with --role "
        "GLOB=weight_grad",
        join(r.roles_found));
  }
  if (r.reason == "all_zero") return "every finite gradient value is zero";
  if (r.reason == "scale_unknown") {
    return "gradients computed in FP16 hold infinities, and the loss scale they were computed at "
           "is "
           "not known, so nobody can tell how large they were; record it with the run, or leave "
           "the "
           "steps out with --step";
  }
  if (r.reason == "no_finite_values") return "no gradient value is finite, or there are none";
  return r.reason;
}

void print_limit(const Recommendation& r) {
  const analyzers::Limit& limit = *r.limited_by;
  fmt::print(
      "Limited by {} at step {}: its largest magnitude is {}{}, which leaves {}{:.1f} binades "
      "below overflow.\n",
      log::printable(limit.name), limit.step, limit.censored ? "at least " : "",
      text::magnitude_text(limit.max_abs), limit.censored ? "at most " : "", r.headroom_bits);
  if (limit.from_scalars) {
    fmt::print(
        "It comes from the scalars of every step; no table holds it, so the tensor is not "
        "known.\n");
  }
}

/// Which scales keep the target, or why none does.
void print_range(const Recommendation& r, const Options& options) {
  const std::string target = text::share_text(options.recommend.target_underflow);
  if (r.lowest_log2 && *r.lowest_log2 <= 0 && *r.highest_log2 >= 0) {
    fmt::print(
        "Underflow asks for no loss scale: without one, every tensor's flushed share is within "
        "the target of {}.\n",
        target);
  }
  if (r.lowest_log2 && *r.lowest_log2 <= *r.highest_log2) {
    fmt::print(
        "Any power of two from {} to {} keeps the flushed share of every tensor at {} or less.\n",
        text::power_text(*r.lowest_log2), text::power_text(*r.highest_log2), target);
  }
  if (!r.reason.empty()) fmt::print("Even so, {}.\n", log::printable(r.reason));
  if (*r.static_log2 == analyzers::kLastLog2Scale && !r.above_target.empty()) {
    fmt::print(
        "2^{} is the largest scale considered: these gradients are too small for FP16 at any "
        "scale in use.\n",
        analyzers::kLastLog2Scale);
  }
}

void print_evidence(const Recommendation& r, const Options& options) {
  fmt::print("Gradients flushed to zero: {} without a scale, {} with {}.\n", share(r.flushed_at_1),
             share(r.flushed_at_recommended), text::power_text(*r.static_log2));
  print_limit(r);
  print_range(r, options);
  if (r.underflow_not_identifiable) {
    fmt::print(
        "Some gradients were computed in FP16: what underflowed there is already zero, so the "
        "shares are bounds and no lowest scale can be given. Record an FP32 or BF16 run to "
        "see it.\n");
  }
}

/// The lines of one framework, indented.
std::string snippet_text(const Recommendation& r, const std::string& framework) {
  std::string text;
  for (const reports::Snippet& snippet : reports::snippets(r)) {
    if (snippet.framework != framework) continue;
    for (const char c : snippet.fixed) text += c == '\n' ? std::string("\n  ") : std::string(1, c);
    if (framework != "pytorch") text += fmt::format("\n\n{}: {}", snippet.label, snippet.note);
  }
  return text;
}

void print(const Recommendation& r, const Options& options) {
  if (!r.static_log2) {
    fmt::print("No loss scale can be recommended: {}.\n", reason_text(r));
  } else {
    fmt::print("Use a loss scale of {}.\n\n  {}\n\n", text::power_text(*r.static_log2),
               snippet_text(r, options.framework));
    print_evidence(r, options);
    fmt::print("{}", advice_text(r));
  }
  fmt::print("{}", cures_text(r));
  if (!r.nonfinite_steps.empty()) {
    fmt::print("Gradients hold NaN or infinity at {}, first at step {}.\n",
               text::plural(r.nonfinite_steps.size(), "step"), r.nonfinite_steps.front());
  }
  if (!r.overflow_without_cure.empty()) {
    fmt::print("Overflow that no loss scale cures: {}.\n", join(r.overflow_without_cure));
  }
}

int run(const Options& options) {
  require_no_input(options.json, options);
  require_junit_sense(options.junit, options.fail_if, options);
  const auto conditions = parse_conditions(options.fail_if, analyzers::Subject::recommendation);
  const analyzers::Study study =
      analyzers::study(run_analysis(options), selection_of(options), options.recommend);
  const GateLines gate = test_conditions(conditions, study.advice);
  if (!options.json.empty()) {
    auto json = reports::to_json(study.advice);
    reports::put_overflow(json, study.analysis, study.overflow);
    write_output(options.json, reports::json_text(json) + "\n");
  }
  write_junit(options.junit, "recommend", gate);
  if (options.json != "-") {
    print(study.advice, options);
    fmt::print("{}", overflow_text(study.analysis, study.overflow));
  }
  return close_gate(gate);
}

}  // namespace

void add_recommend(CLI::App& app, Run& run_out) {
  CLI::App* command =
      app.add_subcommand("recommend", "The loss scale to use, the line to paste, and why");
  const auto options = std::make_shared<Options>();
  options->passes.sums = true;
  add_logs(*command, *options);
  add_steps_and_tensors(*command, *options);
  add_targets(*command, options->recommend);
  command
      ->add_option("--framework", options->framework,
                   "whose lines to print; the JSON and the report have all")
      ->type_name("NAME")
      ->check(CLI::IsMember(reports::framework_names()))
      ->capture_default_str();
  command->add_option("--json", options->json, "write the recommendation as JSON; - for stdout")
      ->type_name("FILE");
  add_fail_if(*command, options->fail_if);
  add_junit(*command, options->junit);
  command->footer(
      "Example:  halfscope recommend runs/mnist --headroom 2\n"
      "          halfscope recommend runs/mnist --fail-if 'lowest > 1024'");
  command->callback([options, &run_out] { run_out = [options] { return run(*options); }; });
}

}  // namespace halfscope::cli
