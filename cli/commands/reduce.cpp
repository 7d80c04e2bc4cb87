// SPDX-License-Identifier: Apache-2.0
// `halfscope reduce`: what sums lose where their accumulator has few bits.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analyzers/reduction/reductions.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/common.hpp"
#include "cli/options/exit.hpp"
#include "cli/options/output.hpp"
#include "cli/terminal/text_section.hpp"
#include "halfscope/log/error.hpp"
#include "halfscope/number/format_names.hpp"
#include "reports/answer/reduction_words.hpp"
#include "reports/export/json.hpp"
#include "reports/export/json_reductions.hpp"

namespace halfscope::cli::commands {
namespace {

namespace sums = analyzers::reduction;
using log::printable;
using options::BadUsage;

struct ReduceOptions : options::LogOptions {
  std::string over, accumulator, order, json;
  std::vector<std::string> counts;
};

std::uint64_t parse_count(const std::string& text) {
  constexpr std::uint64_t kMost = 1'000'000;
  std::uint64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error == std::errc() && stop == end && count >= 2 && count <= kMost) return count;
  throw BadUsage(fmt::format("--count: found '{}', expected a whole number from 2 to {}",
                             printable(text), kMost));
}

std::string_view accumulator_called(const std::string& name) {
  const NamedFormat* const format = format_called(name);
  const bool known = format != nullptr && halfscope::reduction::can_accumulate(format->format);
  if (known) return format->name;
  throw BadUsage(
      fmt::format("--format: found '{}', expected binary16, bfloat16, binary32, tf32 or "
                  "e5m2",
                  printable(name)));
}

sums::Asked asked_of(const ReduceOptions& options) {
  sums::Asked asked;
  if (!options.over.empty()) {
    std::erase_if(asked.over, [&](sums::Over over) { return name_of(over) != options.over; });
  }
  if (!options.accumulator.empty()) asked.formats = {accumulator_called(options.accumulator)};
  if (!options.order.empty()) {
    asked.orders = {halfscope::reduction::find_order(options.order)->order};
  }
  for (const std::string& count : options.counts) asked.counts.push_back(parse_count(count));
  return asked;
}

void require_sense(const ReduceOptions& options) {
  if (options.over == "elements" && !options.counts.empty()) {
    throw BadUsage("reduce: --count is a number of ranks or microbatches; remove --over elements");
  }
  if (options.order == "ring" && !options.over.empty() && options.over != "ranks") {
    throw BadUsage("reduce: a ring is of ranks; use --order sequential, tree or pairwise");
  }
}

[[noreturn]] void refuse_nothing(const ReduceOptions& options) {
  const char* const what = options.over.empty() ? "nothing that is added up"
                           : options.over == "elements"
                               ? "no full tensor whose elements a layer adds up"
                               : "no full gradients from before the sum over";
  throw log::BadInput(fmt::format(
      "{}: has {}{}{}; record with local_gradients=True and sample_every=N (docs/recording.md)",
      printable(options.logs.front()), what, options.over == "elements" ? "" : " ",
      options.over == "elements" || options.over.empty() ? "" : options.over));
}

int run(ReduceOptions options) {
  require_sense(options);
  options.passes.reductions = asked_of(options);
  options.passes.needs_tensors = true;
  options::require_own_files({options.json}, options);
  const analyzers::Findings found = options::run_analysis(options);
  if (found.reductions.empty()) refuse_nothing(options);
  if (!options.json.empty()) {
    options::write_output(
        options.json,
        reports::exports::json_text(reports::exports::reductions_json(found.reductions)) + "\n");
  }
  if (options.json == "-") return options::kFine;
  fmt::print("{}", terminal::section_text(reports::answer::reduction_section(found.reductions)));
  return options::kFine;
}

std::vector<std::string> names_of_over() {
  std::vector<std::string> names;
  for (const sums::Over over : sums::kOver) names.emplace_back(name_of(over));
  return names;
}

std::vector<std::string> names_of_orders() {
  std::vector<std::string> names;
  for (const auto& row : halfscope::reduction::kOrders) names.emplace_back(row.name);
  return names;
}

}  // namespace

void add_reduce(options::Parser& parser) {
  options::Command command = parser.add(
      "reduce", "Measure what sums lose in FP16 and BF16: over ranks, microbatches and elements");
  const auto options = std::make_shared<ReduceOptions>();
  options::add_logs(command, *options);
  options::add_steps_and_tensors(command, *options);
  command.option("--over", options->over, "what is added up (default: all that the log has)")
      .one_of(names_of_over());
  command
      .option("--format", options->accumulator,
              "format of the accumulator (default: binary16, bfloat16 and binary32)")
      .type("F");
  command
      .option("--count", options->counts,
              "also predict the sum over W ranks or microbatches, from 4 recorded ones or more")
      .type("W")
      .repeatable();
  command.option("--order", options->order, "order of additions (default: each)")
      .one_of(names_of_orders());
  command.option("--json", options->json, "write all numbers as JSON; - for stdout").type("FILE");
  command.footer(
      "Example:  halfscope reduce runs/gpt --over ranks --count 384\n"
      "          halfscope reduce runs/gpt --over elements --format fp16");
  command.runs([options] { return run(*options); });
}

}  // namespace halfscope::cli::commands
