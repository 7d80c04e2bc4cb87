// SPDX-License-Identifier: Apache-2.0
// What whole tensors add to an analysis of tables.
#pragma once

#include <functional>

#include "analyzers/formats/format_fit.hpp"
#include "analyzers/study.hpp"

namespace halfscope::analyzers {

/// What stands beside the analysis.
struct WholeFound {
  std::vector<overflow::AttentionScores> scores;  ///< where anything else is asked of whole tensors
  std::vector<reduction::Reduction> reductions;
};

/// Reads the logs' whole tensors, each once, for everything that is asked of them: updates
/// (updates::UpdatePass), formats or sums (formats::WholePass), what 16-bit sums lose
/// (reduction::ReductionPass), the bounds of attention scores. predicting: asked for where its
/// predictions begin. Holds no more at a time than a weight and what its update is made of; of sums
/// over ranks a part of each rank's tensor. Throws log::BadInput.
WholeFound add_whole_steps(underflow::Analysis& analysis, const frames::Selection& selection,
                           const Passes& passes, const formats::FitOptions& options = {},
                           const frames::Progress& progress = {}, const readers::Logs& opened = {},
                           const std::function<frames::Progress()>& predicting = {});

}  // namespace halfscope::analyzers
