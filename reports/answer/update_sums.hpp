// SPDX-License-Identifier: Apache-2.0
// What became of the updates of several weights together.
#pragma once

#include <cstddef>
#include <optional>

#include "analyzers/study.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "reports/answer/series.hpp"

namespace halfscope::reports::answer {

struct UpdateSum {
  std::size_t weights = 0;  ///< that have pairs
  UpdateTable table;
  std::uint64_t undetermined = 0;
  std::optional<UpdateWhatIf> what_if;  ///< empty unless every weight has one
};

/// Of the tensors that have updates.
UpdateSum sum_updates(const Tensors& tensors);
UpdateSum all_updates(const analyzers::underflow::Analysis& analysis);

/// Updates by the format that each weight itself is kept in.
struct SumsByKept {
  UpdateSum narrow;  ///< of weights kept in the target format: the run itself loses these updates
  UpdateSum others;  ///< what the target format would lose of the others
};
SumsByKept sums_by_kept(const Tensors& tensors, Format target);

/// Whether the updates of `part` that are lost are such a share of all updates, or more.
bool loses_share(const UpdateSum& part, const SumsByKept& all, double share);

/// Those of the tensors that have updates, the largest lost share first.
Tensors with_updates(const Tensors& tensors);

}  // namespace halfscope::reports::answer
