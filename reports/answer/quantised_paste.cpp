// SPDX-License-Identifier: Apache-2.0
// Lines that keep layers in BF16. The first is a section of the file for Transformer Engine's debug
// features: transformer_engine/debug/features/disable_quantization_layer.py. It chooses layers by
// re.search with layer_name_regex_pattern (nvdlfw_inspect/config_manager.py). The second names
// layers as the guide of NVIDIA BioNeMo's FP8 Training Analyzer does.
#include <fmt/format.h>

#include "halfscope/log/error.hpp"
#include "reports/answer/quantised.hpp"

namespace halfscope::reports::answer {

using analyzers::formats::LayerLoss;
using analyzers::formats::QuantisedLog;

namespace {

/// Escapes a name for a Python regular expression inside single quotes of YAML.
std::string in_pattern(std::string_view name) {
  constexpr std::string_view kSpecial = R"(\.^$*+?{}[]|()-)";
  std::string out;
  for (const char c : log::printable(name)) {
    if (kSpecial.find(c) != kSpecial.npos) out += '\\';
    if (c == '\'') out += '\'';
    out += c;
  }
  return out;
}

std::string in_python(std::string_view name) {
  std::string out = "\"";
  for (const char c : log::printable(name)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

template <typename Quote>
std::string joined(const std::vector<std::string>& layers, std::string_view between,
                   const Quote& quote) {
  std::string out;
  for (const std::string& layer : layers) {
    out += (out.empty() ? "" : std::string(between)) + quote(layer);
  }
  return out;
}

}  // namespace

std::vector<PasteLines> keep_pastes(const std::vector<std::string>& layers) {
  if (layers.empty()) return {};
  return {
      {"For the file that nvdlfw_inspect reads (Transformer Engine)",
       fmt::format("keep_in_bf16: {{enabled: True, layers: {{layer_name_regex_pattern: '^({})$'}}, "
                   "transformer_engine: {{DisableQuantizationLayer: {{enabled: True}}}}}}",
                   joined(layers, "|", in_pattern)),
       "A layer may match one section of that file only: leave these out of the section that logs "
       "statistics. Before Transformer Engine 2.13, write DisableFP8Layer."},
      {"The same layers in Python, as NVIDIA BioNeMo's guide names them",
       fmt::format("fp8_skip_layers = [{}]", joined(layers, ", ", in_python))}};
}

std::vector<PasteLines> recipe_pastes(const std::vector<std::string>& layers,
                                      const block::Recipe& recipe) {
  if (recipe.scale == block::ScaleFormat::none) return {};  // no framework has it
  std::vector<PasteLines> out = keep_pastes(layers);
  if (out.empty()) return out;
  out[1] = {"For torchao's quantize_()",
            fmt::format("filter_fn=lambda module, name: isinstance(module, torch.nn.Linear) and "
                        "name not in {{{}}}",
                        joined(layers, ", ", in_python))};
  if (recipe.scale != block::ScaleFormat::e4m3) {
    const bool mx = recipe.scale == block::ScaleFormat::e8m0;
    const auto plain = [](const std::string& layer) { return log::printable(layer); };
    out.push_back({"For torchtitan",
                   fmt::format("--quantize.linear.{}.filter_fqns={}", mx ? "mx" : "float8",
                               joined(layers, ",", plain)),
                   "The option also leaves out modules whose names contain one of these."});
  }
  std::string matchers;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    matchers += fmt::format("\n  keep_{}: {{type: glob, enabled: true, pattern: {}, config: bf16}}",
                            i, in_python("*" + layers[i]));
  }
  out.push_back({"For the file of --te-precision-config-file (Megatron Core, Megatron Bridge)",
                 "configs:\n  bf16: {transformer_engine_config_type: TEQuantizationParams, "
                 "training_recipe: {}}\nmatchers:" +
                     matchers,
                 "Megatron has names of its own for layers: change the patterns to these. Each "
                 "matches every name that ends in it."});
  return out;
}

std::vector<PasteLines> keep_pastes(const QuantisedLog& log) {
  std::vector<std::string> names;
  for (const LayerLoss* layer : log.to_keep()) names.push_back(layer->layer);
  return keep_pastes(names);
}

std::vector<PasteLines> keep_pastes(const analyzers::Findings& found) {
  std::vector<PasteLines> all;
  for (const QuantisedLog& log : found.quantised) {
    for (PasteLines& paste : keep_pastes(log)) all.push_back(std::move(paste));
  }
  return all;
}

}  // namespace halfscope::reports::answer
