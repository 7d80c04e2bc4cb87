// SPDX-License-Identifier: Apache-2.0
// What becomes of one weight's updates; updates.hpp finds it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "halfscope/table/count/count.hpp"
#include "halfscope/table/update/update_table.hpp"
#include "halfscope/table/update/update_what_if.hpp"

namespace halfscope::analyzers::underflow {

/// Where updates come from, in the order of preference.
enum class UpdateSource : std::uint8_t {
  update,           ///< recorded
  optimizer_state,  ///< momentum, Adam, AdamW: recomputed from recorded state
  gradient,         ///< plain SGD: weight, gradient and learning rate
  difference        ///< weight and weight_after: zero differences are undetermined
};
std::string_view name_of(UpdateSource source);
std::optional<UpdateSource> find_update_source(std::string_view name);

/// One weight over the sampled steps.
struct UpdateFindings {
  UpdateSource source = UpdateSource::update;
  std::optional<Dtype> kept_in;  ///< the weight's own, as kept_weights.hpp finds it
  UpdateTable table;  ///< of all steps, in the arithmetic of the format that AddedTo says
  /// Zero differences, of which it cannot be told whether an update was lost. Not in table.counts.
  std::uint64_t undetermined = 0;
  std::vector<std::pair<std::int64_t, UpdateCounts>> per_step;  ///< ascending
  std::optional<UpdateWhatIf> what_if;
};

}  // namespace halfscope::analyzers::underflow
