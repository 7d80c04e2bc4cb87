// SPDX-License-Identifier: Apache-2.0
// Lost updates, summed over weights.
#pragma once

#include <cstddef>
#include <optional>

#include "analyzers/study.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "reports/answer/series.hpp"

namespace halfscope::reports::answer {

struct UpdateSum {
  std::size_t weights = 0;  ///< number of weights that have updates
  UpdateTable table;
  std::uint64_t undetermined = 0;
  std::optional<UpdateWhatIf> what_if;  ///< empty unless every weight has one
};

/// Returns the sums over those tensors that have updates.
UpdateSum sum_updates(const Tensors& tensors);
UpdateSum all_updates(const analyzers::underflow::Analysis& analysis);

/// Updates by the format in which the run keeps each weight.
struct SumsByKept {
  UpdateSum narrow;  ///< weights kept in the target format: the run itself loses these updates
  UpdateSum others;  ///< other weights: what the target format would lose
};
SumsByKept sums_by_kept(const Tensors& tensors, Format target);

/// Returns true if the lost updates of `part` are at least `share` of all updates.
bool loses_share(const UpdateSum& part, const SumsByKept& all, double share);

/// Returns the tensors that have updates, largest lost share first.
Tensors with_updates(const Tensors& tensors);

}  // namespace halfscope::reports::answer
