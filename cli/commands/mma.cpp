// SPDX-License-Identifier: Apache-2.0
// `halfscope mma`: dot products as a Tensor Core computes them, one per line.
#include <fmt/format.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <optional>

#include "cli/commands/commands.hpp"
#include "cli/emulate/lines.hpp"

namespace halfscope::cli::commands {

using options::BadUsage;
using options::Command;
using tensor_core::Accumulator;
using tensor_core::Architecture;
using tensor_core::Scale;
using tensor_core::ScaledUnit;

namespace {

using Sections = std::vector<reports::answer::Section>;

struct Inputs {
  std::string_view word;
  Format format;                                              ///< format of the elements
  std::optional<ScaledUnit> Architecture::*scaled = nullptr;  ///< null: elements without scales
};
constexpr std::array kInputs = {Inputs{"fp16", kBinary16},
                                Inputs{"bf16", kBfloat16},
                                Inputs{"e4m3", kFloat8E4M3},
                                Inputs{"e5m2", kFloat8E5M2},
                                Inputs{"mxf8f6f4", kFloat8E4M3, &Architecture::mxf8f6f4},
                                Inputs{"mxf4", kFloat4E2M1, &Architecture::mxf4},
                                Inputs{"mxf4nvf4", kFloat4E2M1, &Architecture::mxf4nvf4}};

constexpr std::string_view kElements[] = {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"};  // mxf8f6f4
constexpr std::string_view kScales[] = {"e4m3", "e8m0"};                            // mxf4nvf4

struct Sums {
  std::string_view word;
  Accumulator accumulator;
};
constexpr std::array kSums = {Sums{"fp32", Accumulator::binary32},
                              Sums{"fp16", Accumulator::binary16}};

struct MmaOptions {
  Architecture architecture = tensor_core::kArchitectures[0];
  Sums sums = kSums[0];
  Inputs inputs = kInputs[0];
  std::optional<Format> a, b;
  std::optional<Scale> scales;
};

/// Returns an architecture's unit, with block 0 if the inputs have no scales. Empty if it has none.
std::optional<ScaledUnit> unit_for(const Architecture& of, const Inputs& inputs, const Sums& sums) {
  if (inputs.scaled != nullptr) {
    return sums.accumulator == Accumulator::binary32 ? of.*inputs.scaled : std::nullopt;
  }
  const auto unit = unit_of(of, inputs.format, inputs.format, sums.accumulator);
  return unit ? std::optional(ScaledUnit{.unit = *unit}) : std::nullopt;
}

/// Returns an architecture's units: "fp16 (sums of fp32 or fp16), bf16 (sums of fp32)".
std::string what_it_has(const Architecture& of) {
  std::string out;
  for (const Inputs& inputs : kInputs) {
    std::string sums;
    for (const Sums& one : kSums) {
      if (!unit_for(of, inputs, one)) continue;
      sums += fmt::format("{}{}", sums.empty() ? "" : " or ", one.word);
    }
    if (sums.empty()) continue;
    out += fmt::format("{}{} (sums of {})", out.empty() ? "" : ", ", inputs.word, sums);
  }
  return out;
}

[[noreturn]] void refuse_unit(const MmaOptions& options) {
  std::string others;
  for (const Architecture& one : tensor_core::kArchitectures) {
    if (!unit_for(one, options.inputs, options.sums)) continue;
    others += fmt::format("{}{}", others.empty() ? "; or --arch " : "|", one.name);
  }
  throw BadUsage(fmt::format("{} has no Tensor Core for {} with sums of {}; use one of: {}{}",
                             options.architecture.name, options.inputs.word, options.sums.word,
                             what_it_has(options.architecture), others));
}

/// Throws BadUsage if an option is given that these inputs do not have.
void require_options_of(const MmaOptions& options) {
  struct Row {
    bool given;
    std::string_view option, inputs;
  };
  for (const Row& row : {Row{options.a.has_value(), "--a", "mxf8f6f4"},
                         Row{options.b.has_value(), "--b", "mxf8f6f4"},
                         Row{options.scales.has_value(), "--scales", "mxf4nvf4"}}) {
    if (!row.given || options.inputs.word == row.inputs) continue;
    throw BadUsage(fmt::format("{0} needs --inputs {1}; found --inputs {2}; remove {0}", row.option,
                               row.inputs, options.inputs.word));
  }
}

emulate::DotProduct product_of(const MmaOptions& options) {
  require_options_of(options);
  auto unit = unit_for(options.architecture, options.inputs, options.sums);
  if (!unit) refuse_unit(options);
  unit->scale = options.scales.value_or(unit->scale);
  const Format f = options.inputs.format;
  return {*unit, options.sums.accumulator, options.a.value_or(f), options.b.value_or(f)};
}

void add_block_options(Command& command, const std::shared_ptr<MmaOptions>& options) {
  const auto elements_of = [&](const std::string& name, std::optional<Format> MmaOptions::*format) {
    command.words(
        "--" + name, options::words_of(kElements, std::identity()),
        [=](std::size_t i) { (*options).*format = find_format(kElements[i])->format; },
        "mxf8f6f4: elements of " + name);
  };
  elements_of("a", &MmaOptions::a);
  elements_of("b", &MmaOptions::b);
  command.words(
      "--scales", options::words_of(kScales, std::identity()),
      [options](std::size_t i) { options->scales = i == 0 ? Scale::e4m3 : Scale::e8m0; },
      "mxf4nvf4: format of the scales, one per 16 elements");
}

void add_unit_options(Command& command, const std::shared_ptr<MmaOptions>& options) {
  command.words(
      "--arch", options::words_of(tensor_core::kArchitectures, &Architecture::name),
      [options](std::size_t i) { options->architecture = tensor_core::kArchitectures[i]; },
      "the GPU's architecture");
  command.words(
      "--accumulate", options::words_of(kSums, &Sums::word),
      [options](std::size_t i) { options->sums = kSums[i]; }, "the format of sums");
  command.words(
      "--inputs", options::words_of(kInputs, &Inputs::word),
      [options](std::size_t i) { options->inputs = kInputs[i]; }, "the format of a and b");
  add_block_options(command, options);
}

Sections explain_sum(const MmaOptions& options, const std::vector<std::string>& operands) {
  Sections sections =
      emulate::explain_dot(product_of(options), fmt::format("{}", fmt::join(operands, " ")));
  sections.front().title =
      fmt::format("Dot product of {} on {}, with sums of {}", options.inputs.word,
                  options.architecture.name, options.sums.word);
  return sections;
}

}  // namespace

std::function<Sections(const std::vector<std::string>&)> add_sum_options(Command& command) {
  const auto options = std::make_shared<MmaOptions>();
  add_unit_options(command, options);
  return [options](const auto& operands) { return explain_sum(*options, operands); };
}

void add_mma(options::Parser& parser) {
  Command command =
      parser.add("mma", "Compute a Tensor Core's dot product on each line, bit for bit");
  const auto options = std::make_shared<MmaOptions>();
  add_unit_options(command, options);
  command.known("--arch").required();
  command.known("--accumulate").required();
  command.footer(
      "Reads lines from stdin: the values of a in hex, separated by commas, those of b, and c; "
      "writes\n"
      "the result of each line in hex. Digits: fp16, bf16 4; e4m3, e5m2, e3m2, e2m3 2; e2m1 1; c "
      "and\n"
      "results 8 (fp32) or 4. The scales of a and those of b follow c, 2 digits each: one per 32\n"
      "elements (mxf8f6f4, mxf4) or per 16 (mxf4nvf4).\n"
      "Example:  echo 6800,E800,3C00 6800,6800,1400 00000000 |\n"
      "          halfscope mma --arch hopper --accumulate fp32\n"
      "          echo 2,4 4,5 00000000 80 7F |\n"
      "          halfscope mma --arch blackwell --accumulate fp32 --inputs mxf4");
  command.runs([options] {
    emulate::answer_dots(product_of(*options), STDIN_FILENO, STDOUT_FILENO);
    return options::kFine;
  });
}

}  // namespace halfscope::cli::commands
