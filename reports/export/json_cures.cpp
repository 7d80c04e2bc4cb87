// SPDX-License-Identifier: Apache-2.0
// Advice beyond a single scale: scales per layer, tensors to keep in FP32, memory, lines to paste.
#include "reports/answer/cure_words.hpp"
#include "reports/answer/snippets.hpp"
#include "reports/export/json.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {
namespace {

using analyzers::recommend::Footprint;
using analyzers::recommend::KeepInFp32;
using analyzers::recommend::LayerScale;
using analyzers::recommend::Recommendation;

Json layer_json(const LayerScale& layer) {
  Json to = {{"layer", layer.layer},
             {"lowest", power_json(layer.lowest_log2)},
             {"highest", power_json(layer.highest_log2)},
             {"of", to_json(layer.of)},
             {"flushed_at_static", to_json(layer.flushed_at_static)},
             {"flushed_at_highest", to_json(layer.flushed_at_own)}};
  if (layer.als) to["als"] = number_json(layer.als);
  return to;
}

Json keep_json(const KeepInFp32& keep, const Recommendation& advice) {
  Json to = {{"name", keep.name},
             {"kind", answer::name_of(keep.kind)},
             {"why", answer::why_text(keep, advice)}};
  if (keep.highest_log2_without) {
    to["highest_without"] = power_json(keep.highest_log2_without);
    to["binades_gained"] = keep.binades_gained;
  }
  return to;
}

Json footprint_json(const Footprint& f) {
  Json to = {{"weights", f.weights},         {"activations", f.activations},
             {"bytes_fp32", f.bytes_fp32},   {"bytes_fp16", f.bytes_fp16},
             {"bytes_mixed", f.bytes_mixed}, {"not_multiples_of_8", Json::array()}};
  if (f.microbatches > 1) to["microbatches"] = f.microbatches;
  for (const Footprint::Odd& odd : f.not_multiples_of_8) {
    to["not_multiples_of_8"].push_back(
        {{"name", odd.name}, {"shape", odd.shape}, {"why", answer::why_text(odd)}});
  }
  return to;
}

}  // namespace

void put_cures(Json& to, const analyzers::Study& study) {
  const Recommendation& advice = study.advice;
  for (const LayerScale& layer : advice.per_layer) to["per_layer"].push_back(layer_json(layer));
  for (const KeepInFp32& keep : advice.keep_in_fp32) {
    to["keep_in_fp32"].push_back(keep_json(keep, advice));
  }
  if (advice.footprint) to["footprint"] = footprint_json(*advice.footprint);
  for (const answer::Snippet& snippet : answer::snippets(study)) {
    const std::string key(snippet.framework);
    if (!snippet.fixed.lines.empty()) to["snippets"][key] = snippet.fixed.lines;
    if (!snippet.dynamic.lines.empty()) to["dynamic_snippets"][key] = snippet.dynamic.lines;
  }
}

}  // namespace halfscope::reports::exports
