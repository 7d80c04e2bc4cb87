// SPDX-License-Identifier: Apache-2.0
// All findings of a study as sentences, most severe first.
#pragma once

#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Returns the findings by severity, then in the order of the rules in findings.cpp. Empty if
/// nothing was found.
std::vector<Finding> findings(const analyzers::Study& study);

/// The rule of one kind of findings: adds those that apply to `to`, each with its sentence.
using FindingRule = void(const analyzers::Study& study, std::vector<Finding>& to);

FindingRule find_adam_losses;                                            // adam.cpp
FindingRule find_wide_tensors, find_delayed_scaling, find_mx_gradients;  // formats.cpp
FindingRule find_rounded_state, find_frozen_weights;                     // claims.cpp
FindingRule find_layer_shifts, find_possible_shifts, find_attention_scores, find_summed_loss,
    find_odd_dimensions;  // layers.cpp
FindingRule find_lasting_failure, find_nan_in_model, find_overflow_without_cure, find_overflow_at_1,
    find_growth_probes, find_overflow_by_scale, find_overflow_at_asked, find_unexplained,
    find_thin_headroom, find_growing_tensor;      // overflow.cpp
FindingRule find_policy_faults;                   // policies.cpp
FindingRule find_quantised_losses;                // quantised.cpp
FindingRule find_differing_ranks;                 // ranks.cpp
FindingRule find_recipe_noise, find_recipe_bias;  // recipes.cpp
FindingRule find_carried_scale;                   // scale_limits.cpp
FindingRule find_run_alarms, find_collapses;      // timeline_states.cpp
FindingRule find_underflow, find_no_single_scale, find_unusual_scale, find_rounding_noise,
    find_unknown_maximum, find_unknown_underflow;  // underflow.cpp
FindingRule find_lost_updates;                     // updates.cpp

/// Returns a finding for each state with which an update of Adam divides by zero.
std::vector<Finding> adam_divisions(const analyzers::Findings& found);

}  // namespace halfscope::reports::answer
