// SPDX-License-Identifier: Apache-2.0
// `halfscope reduce`: the losses of sums whose accumulator has few bits.
#include <fmt/format.h>

#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "analyzers/reduction/reductions.hpp"
#include "cli/commands/commands.hpp"
#include "cli/options/common.hpp"
#include "cli/options/output.hpp"
#include "cli/terminal/text_table.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/reduction.hpp"
#include "reports/export/json.hpp"

namespace halfscope::cli::commands {
namespace {

namespace sums = analyzers::reduction;
using log::printable;
using options::BadUsage;

struct ReduceOptions : options::LogOptions {
  std::string over, order, json;
  std::optional<std::string> accumulator;
  std::vector<std::string> counts;
};

sums::ReductionOptions asked_of(const ReduceOptions& options) {
  std::vector<std::uint64_t> counts;
  for (const std::string& text : options.counts) {
    const char* const end = text.data() + text.size();
    std::uint64_t& count = counts.emplace_back();
    const auto [stop, error] = std::from_chars(text.data(), end, count);
    if (error == std::errc() && stop == end) continue;
    throw BadUsage(fmt::format("--count: found '{}', expected a whole number", printable(text)));
  }
  try {
    return reports::answer::sums_called(options.over, options.accumulator, options.order, counts);
  } catch (const std::invalid_argument& e) {
    throw BadUsage(fmt::format("--{}", e.what()));
  }
}

int run(ReduceOptions options) {
  options.passes.reductions = asked_of(options);
  options.passes.needs_tensors = true;
  options::require_own_files({options.json}, options);
  const analyzers::Findings found = options::run_analysis(options);
  if (found.reductions.empty()) {
    throw log::BadInput(reports::answer::no_sums_text(options.logs.front(), options.over));
  }
  if (!options.json.empty()) {
    options::write_output(
        options.json,
        reports::exports::json_text(reports::exports::reductions_json(found.reductions)) + "\n");
  }
  if (options.json == "-") return options::kFine;
  fmt::print("{}", terminal::section_text(reports::answer::reduction_section(found.reductions)));
  return options::kFine;
}

}  // namespace

void add_reduce(options::Parser& parser) {
  options::Command command = parser.add(
      "reduce", "Measure what sums lose in FP16 and BF16: over ranks, microbatches and elements");
  const auto options = std::make_shared<ReduceOptions>();
  options::add_logs(command, *options);
  options::add_steps_and_tensors(command, *options);
  command.option("--over", options->over, "what is added up (default: all that the log has)")
      .one_of(options::words_of(sums::kOver, [](sums::Over over) { return name_of(over); }));
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
      .one_of(options::words_of(halfscope::reduction::kOrders,
                                [](const auto& row) { return row.name; }));
  command.option("--json", options->json, "write all numbers as JSON; - for stdout").type("FILE");
  command.footer(
      "Example:  halfscope reduce runs/gpt --over ranks --count 384\n"
      "          halfscope reduce runs/gpt --over elements --format fp16");
  command.runs([options] { return run(*options); });
}

}  // namespace halfscope::cli::commands
