// SPDX-License-Identifier: Apache-2.0
// Factors that can be moved between layers, and bounds of attention scores, as JSON (docs/json.md).
#include "reports/export/json.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {
namespace {

Json shift_json(const analyzers::overflow::LayerShift& shift) {
  Json to = {{"log", shift.log},
             {"activation", shift.activation},
             {"max_abs", number_json(shift.max_abs)},
             {"layer", shift.layer},
             {"next", shift.next},
             {"log2", shift.log2},
             {"next_max_abs", number_json(shift.next_max_abs)},
             {"flushed_to_zero", to_json(shift.flushed)},
             {"subnormal", to_json(shift.subnormal)},
             {"of", to_json(shift.of)},
             {"in_sequence", shift.in_sequence}};
  if (shift.censored) to["censored"] = true;
  if (!shift.between.empty()) to["between"] = shift.between;
  return to;
}

Json scores_json(const analyzers::overflow::AttentionScores& scores) {
  Json to = {{"log", scores.log},
             {"query", scores.query},
             {"key", scores.key},
             {"step", scores.step},
             {"query_norm", number_json(scores.query_norm)},
             {"key_norm", number_json(scores.key_norm)},
             {"width", scores.width},
             {"at_most", number_json(scores.at_most())},
             {"can_overflow", scores.can_overflow}};
  if (scores.by_head) to["head_at_most"] = analyzers::overflow::kLargestHead;
  if (scores.can_overflow) to["enough_head"] = scores.enough_head;
  return to;
}

}  // namespace

void put_layers(Json& to, const analyzers::Findings& found) {
  for (const auto& shift : found.shifts) to["layer_shifts"].push_back(shift_json(shift));
  for (const auto& scores : found.scores) to["attention_scores"].push_back(scores_json(scores));
}

}  // namespace halfscope::reports::exports
