// SPDX-License-Identifier: Apache-2.0
// What became of the updates of several weights together.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

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

/// "Weights are kept in BF16 ...: 55 % of 12,163 sampled updates are lost. Keep FP32 master
/// weights."; empty where some weights are not kept in the target format, or nothing is lost.
std::string kept_narrow_text(const analyzers::Findings& found);
/// Whether that is what harms most, so that it is said first: from kSerious on.
bool lost_updates_first(const analyzers::Findings& found);

/// Those of the tensors that have updates, the largest lost share first.
Tensors with_updates(const Tensors& tensors);

}  // namespace halfscope::reports::answer
