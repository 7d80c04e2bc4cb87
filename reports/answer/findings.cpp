// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/findings.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace halfscope::reports::answer {
namespace {

/// A kind of finding: its stable name, its rule, and the section with its evidence.
struct FindingKind {
  std::string_view id;
  FindingRule* find;
  Evidence evidence;
  /// Kinds that say more: if one of them is found, this one is not searched for.
  std::array<std::string_view, 2> superseded_by = {};
};

/// All kinds, in the order in which findings of equal severity are shown.
constexpr FindingKind kKinds[] = {
    {"carried_scale", find_carried_scale, Evidence::scales},
    {"adam", find_adam_losses, Evidence::updates},
    {"rounded_state", find_rounded_state, Evidence::weights},
    {"run_alarm", find_run_alarms, Evidence::timeline},
    {"collapse", find_collapses, Evidence::timeline},
    {"lasting_failure", find_lasting_failure, Evidence::overflow},
    {"nan_in_model", find_nan_in_model, Evidence::overflow},
    {"lost_updates", find_lost_updates, Evidence::updates},
    {"frozen_weights", find_frozen_weights, Evidence::weights},
    {"quantised", find_quantised_losses, Evidence::quantised},
    {"no_cure", find_overflow_without_cure, Evidence::overflow},
    {"rank", find_differing_ranks, Evidence::ranks},
    {"layer_shift", find_layer_shifts, Evidence::overflow},
    {"possible_shift", find_possible_shifts, Evidence::advice},
    {"attention_scores", find_attention_scores, Evidence::advice},
    {"overflow_at_1", find_overflow_at_1, Evidence::overflow, {"no_cure"}},
    {"growth_probe", find_growth_probes, Evidence::overflow},
    {"overflow_by_scale", find_overflow_by_scale, Evidence::overflow},
    {"overflow_at_asked",
     find_overflow_at_asked,
     Evidence::scales,
     {"growth_probe", "overflow_by_scale"}},
    {"unexplained", find_unexplained, Evidence::overflow},
    {"policy", find_policy_faults, Evidence::policies},
    {"underflow", find_underflow, Evidence::scales},
    {"no_single_scale", find_no_single_scale, Evidence::advice},
    {"unusual_scale", find_unusual_scale, Evidence::scales},
    {"rounding_noise", find_rounding_noise, Evidence::scales},
    {"thin_headroom", find_thin_headroom, Evidence::overflow},
    {"growing_tensor", find_growing_tensor, Evidence::overflow},
    {"unknown_maximum", find_unknown_maximum, Evidence::overflow},
    {"unknown_underflow", find_unknown_underflow, Evidence::scales},
    {"summed_loss", find_summed_loss, Evidence::advice},
    {"dimensions", find_odd_dimensions, Evidence::advice},
    {"wide_tensors", find_wide_tensors, Evidence::formats},
    {"delayed_scaling", find_delayed_scaling, Evidence::formats},
    {"mx_gradients", find_mx_gradients, Evidence::formats},
    {"recipe_noise", find_recipe_noise, Evidence::recipes},
    {"recipe_bias", find_recipe_bias, Evidence::recipes}};

}  // namespace

std::vector<Finding> findings(const analyzers::Study& study) {
  std::vector<Finding> out;
  for (const FindingKind& kind : kKinds) {
    const auto says_more = [&](const Finding& finding) {
      return std::ranges::find(kind.superseded_by, finding.id) != kind.superseded_by.end();
    };
    if (std::ranges::any_of(out, says_more)) continue;
    const std::size_t before = out.size();
    kind.find(study, out);
    // Run logs have no section about the timeline.
    const bool moved = kind.evidence == Evidence::timeline && study.timelines.empty();
    for (Finding& finding : std::span(out).subspan(before)) {
      finding.id = kind.id;
      finding.evidence = moved ? Evidence::overflow : kind.evidence;
    }
  }
  std::ranges::stable_sort(out, {}, &Finding::severity);
  return out;
}

}  // namespace halfscope::reports::answer
