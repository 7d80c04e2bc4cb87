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

/// Whether all weights with updates are kept in the target format itself, as far as the log shows.
bool kept_narrow(const analyzers::Findings& found);
/// Whether that loses such a share of the updates, or more.
bool loses_updates(const analyzers::Findings& found, double share);

/// Those of the tensors that have updates, the largest lost share first.
Tensors with_updates(const Tensors& tensors);

}  // namespace halfscope::reports::answer
