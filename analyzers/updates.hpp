// SPDX-License-Identifier: Apache-2.0
// Weight updates that FP16 loses: pairs of whole tensors, element by element.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzers/source.hpp"
#include "halfscope/table/update_table.hpp"
#include "halfscope/table/update_what_if.hpp"

namespace halfscope::analyzers {

struct Analysis;

/// Where updates come from, in the order of preference.
enum class UpdateSource : std::uint8_t {
  update,           ///< recorded
  optimizer_state,  ///< momentum, Adam, AdamW: recomputed from recorded state
  gradient,         ///< plain SGD: weight, gradient and learning rate
  difference        ///< weight and weight_after: zero differences are undetermined
};
std::string_view name_of(UpdateSource source);

/// One weight over the sampled steps.
struct UpdateFindings {
  UpdateSource source = UpdateSource::update;
  UpdateTable table;  ///< of all steps, in the arithmetic of the format that AddedTo says
  /// Zero differences, of which it cannot be told whether an update was lost. Not in table.counts.
  std::uint64_t undetermined = 0;
  std::vector<std::pair<std::int64_t, UpdateCounts>> per_step;  ///< ascending
  std::optional<UpdateWhatIf> what_if;
};

/// The format that weights have to which updates are added.
enum class AddedTo : std::uint8_t {
  target,  ///< the target's: what it would make of them
  kept     ///< the one of 16 bits that the run keeps the weight in; the target's where it is wider
};

/// Sets TensorFindings::updates of the weights (or master weights, where there is no weight) that
/// have pairs in the logs' whole tensors. Targets of other width than 16 have none. Throws
/// log::BadInput.
void add_updates(Analysis& analysis, const Selection& selection, bool with_what_if,
                 const Progress& progress = {}, AddedTo added_to = AddedTo::target);

}  // namespace halfscope::analyzers
