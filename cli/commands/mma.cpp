// SPDX-License-Identifier: Apache-2.0
// `halfscope mma`: dot products as a Tensor Core computes them, one per line.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>

#include "cli/commands/commands.hpp"
#include "cli/emulate/lines.hpp"

namespace halfscope::cli::commands {

using options::BadUsage;
using options::Command;
using tensor_core::Accumulator;
using tensor_core::Architecture;

namespace {

struct Inputs {
  std::string_view word;
  Format format;
};
constexpr std::array kInputs = {Inputs{"fp16", kBinary16}, Inputs{"bf16", kBfloat16},
                                Inputs{"e4m3", kFloat8E4M3}, Inputs{"e5m2", kFloat8E5M2}};

struct Sums {
  std::string_view word;
  Accumulator accumulator;
};
constexpr std::array kSums = {Sums{"fp32", Accumulator::binary32},
                              Sums{"fp16", Accumulator::binary16}};

struct MmaOptions {
  Architecture architecture = {};
  Sums sums = kSums[0];
  Inputs inputs = kInputs[0];
};

/// Returns an architecture's units: "fp16 (sums of fp32 or fp16), bf16 (sums of fp32)".
std::string what_it_has(const Architecture& of) {
  std::string out;
  for (const Inputs& inputs : kInputs) {
    std::string sums;
    for (const Sums& one : kSums) {
      if (!unit_of(of, inputs.format, inputs.format, one.accumulator)) continue;
      sums += fmt::format("{}{}", sums.empty() ? "" : " or ", one.word);
    }
    if (sums.empty()) continue;
    out += fmt::format("{}{} (sums of {})", out.empty() ? "" : ", ", inputs.word, sums);
  }
  return out;
}

int run(const MmaOptions& options) {
  const Format f = options.inputs.format;
  const auto unit = unit_of(options.architecture, f, f, options.sums.accumulator);
  if (!unit) {
    throw BadUsage(fmt::format("{} has no Tensor Core for {} with sums of {}; use one of: {}",
                               options.architecture.name, options.inputs.word, options.sums.word,
                               what_it_has(options.architecture)));
  }
  emulate::answer_dots({*unit, options.sums.accumulator, f}, STDIN_FILENO, STDOUT_FILENO);
  return options::kFine;
}

}  // namespace

void add_mma(options::Parser& parser) {
  Command command =
      parser.add("mma", "Compute a Tensor Core's dot product on each line, bit for bit");
  const auto options = std::make_shared<MmaOptions>();
  command
      .words(
          "--arch", options::words_of(tensor_core::kArchitectures, &Architecture::name),
          [options](std::size_t i) { options->architecture = tensor_core::kArchitectures[i]; },
          "the GPU's architecture")
      .required();
  command
      .words(
          "--accumulate", options::words_of(kSums, &Sums::word),
          [options](std::size_t i) { options->sums = kSums[i]; }, "the format of sums")
      .required();
  command.words(
      "--inputs", options::words_of(kInputs, &Inputs::word),
      [options](std::size_t i) { options->inputs = kInputs[i]; }, "the format of a and b");
  command.footer(
      "Reads lines from stdin: the values of a in hex, separated by commas, those of b, and c; "
      "writes\n"
      "the result of each line in hex. Digits: fp16, bf16 4; e4m3, e5m2 2; c and results 8 (fp32) "
      "or 4.\n"
      "Example:  echo 6800,E800,3C00 6800,6800,1400 00000000 |\n"
      "          halfscope mma --arch hopper --accumulate fp32");
  command.runs([options] { return run(*options); });
}

}  // namespace halfscope::cli::commands
