// SPDX-License-Identifier: Apache-2.0
// What became of the updates of several weights together.
#pragma once

#include <cstddef>
#include <optional>

#include "analyzers/underflow.hpp"
#include "reports/series.hpp"

namespace halfscope::reports {

struct UpdateSum {
  std::size_t weights = 0;  ///< that have pairs
  UpdateTable table;
  std::uint64_t undetermined = 0;
  std::optional<UpdateWhatIf> what_if;  ///< empty unless every weight has one
};

/// Of the tensors that have updates.
UpdateSum sum_updates(const Tensors& tensors);
UpdateSum all_updates(const analyzers::Analysis& analysis);

/// Those of the tensors that have updates, the largest lost share first.
Tensors with_updates(const Tensors& tensors);

}  // namespace halfscope::reports
