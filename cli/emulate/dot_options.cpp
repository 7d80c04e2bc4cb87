// SPDX-License-Identifier: Apache-2.0
#include "cli/emulate/dot_options.hpp"

#include <fmt/format.h>

#include <array>
#include <functional>
#include <string>

namespace halfscope::cli::emulate {

using options::BadUsage;
using options::Command;
using tensor_core::Accumulator;
using tensor_core::Architecture;
using tensor_core::Scale;
using tensor_core::ScaledUnit;

namespace {

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

[[noreturn]] void refuse_unit(const DotOptions& options) {
  std::string others;
  for (const Architecture& one : tensor_core::kArchitectures) {
    if (!unit_for(one, kInputs[options.inputs], kSums[options.sums])) continue;
    others += fmt::format("{}{}", others.empty() ? "; or --arch " : "|", one.name);
  }
  throw BadUsage(fmt::format("{} has no Tensor Core for {} with sums of {}; use one of: {}{}",
                             options.architecture.name, kInputs[options.inputs].word,
                             kSums[options.sums].word, what_it_has(options.architecture), others));
}

/// Throws BadUsage if an option is given that these inputs do not have.
void require_options_of(const DotOptions& options) {
  struct Row {
    bool given;
    std::string_view option, inputs;
  };
  for (const Row& row : {Row{options.a.has_value(), "--a", "mxf8f6f4"},
                         Row{options.b.has_value(), "--b", "mxf8f6f4"},
                         Row{options.scales.has_value(), "--scales", "mxf4nvf4"}}) {
    if (!row.given || kInputs[options.inputs].word == row.inputs) continue;
    throw BadUsage(fmt::format("{0} needs --inputs {1}; found --inputs {2}; remove {0}", row.option,
                               row.inputs, kInputs[options.inputs].word));
  }
}

void add_block_options(Command& command, const std::shared_ptr<DotOptions>& options) {
  const auto elements_of = [&](const std::string& name, std::optional<Format> DotOptions::*format) {
    command.words(
        "--" + name, options::words_of(kElements, std::identity()),
        [=](std::size_t i) { (*options).*format = find_format(kElements[i])->format; },
        "mxf8f6f4: elements of " + name);
  };
  elements_of("a", &DotOptions::a);
  elements_of("b", &DotOptions::b);
  command.words(
      "--scales", options::words_of(kScales, std::identity()),
      [options](std::size_t i) { options->scales = i == 0 ? Scale::e4m3 : Scale::e8m0; },
      "mxf4nvf4: format of the scales, one per 16 elements");
}

}  // namespace

void add_dot_options(Command& command, const std::shared_ptr<DotOptions>& options) {
  command
      .words(
          "--arch", options::words_of(tensor_core::kArchitectures, &Architecture::name),
          [options](std::size_t i) { options->architecture = tensor_core::kArchitectures[i]; },
          "the GPU's architecture")
      .no_default();
  command
      .words(
          "--accumulate", options::words_of(kSums, &Sums::word),
          [options](std::size_t i) { options->sums = i; }, "the format of sums")
      .no_default();
  command.words(
      "--inputs", options::words_of(kInputs, &Inputs::word),
      [options](std::size_t i) { options->inputs = i; }, "the format of a and b");
  add_block_options(command, options);
}

DotProduct dot_product_of(const DotOptions& options) {
  require_options_of(options);
  auto unit = unit_for(options.architecture, kInputs[options.inputs], kSums[options.sums]);
  if (!unit) refuse_unit(options);
  unit->scale = options.scales.value_or(unit->scale);
  const Format f = kInputs[options.inputs].format;
  return {*unit, kSums[options.sums].accumulator, options.a.value_or(f), options.b.value_or(f)};
}

}  // namespace halfscope::cli::emulate
