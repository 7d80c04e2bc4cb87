// SPDX-License-Identifier: Apache-2.0
// The outcome of one weight's updates; updates.hpp computes it.
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

/// Origin of updates, in the order of preference.
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
  std::optional<Dtype> kept_in;  ///< type that the weight itself is kept in; kept_weights.hpp
  UpdateTable table;             ///< sum over all steps, in the format chosen by AddedTo
  /// Zero differences: an update may have been lost or was zero. Not in table.counts.
  std::uint64_t undetermined = 0;
  std::vector<std::pair<std::int64_t, UpdateCounts>> per_step;  ///< ascending
  std::optional<UpdateWhatIf> what_if;
};

}  // namespace halfscope::analyzers::underflow
