// SPDX-License-Identifier: Apache-2.0
// Adds what only whole tensors show to an analysis of histograms.
#pragma once

#include <functional>

#include "analyzers/formats/format_fit.hpp"
#include "analyzers/study.hpp"

namespace halfscope::analyzers {

/// Results of whole tensors that are not part of underflow::Analysis.
struct WholeTensorResults {
  std::vector<overflow::AttentionScores> scores;  ///< filled if any pass reads whole tensors
  std::vector<reduction::Reduction> reductions;
  std::vector<weights::Movement> movements;
  std::vector<weights::Claim> claims;  ///< filled if Passes::updates is set
};

/// Reads the logs' whole tensors, each once, for all requested passes: weight updates
/// (updates::UpdatePass), formats or sums (formats::WholePass), 16-bit sums
/// (reduction::ReductionPass), bounds of attention scores, and weights that move between steps
/// (weights::MovedPass, with the updates). `predicting` is called before the
/// predictions of reductions begin and returns their progress callback; an empty function reports
/// nothing. Holds at most one weight and the tensors of its update in memory; for sums over ranks,
/// a part of each rank's tensor. Throws log::BadInput.
WholeTensorResults add_whole_steps(underflow::Analysis& analysis,
                                   const frames::Selection& selection, const Passes& passes,
                                   const formats::FitOptions& options = {},
                                   const frames::Progress& progress = {},
                                   const readers::Logs& opened = {},
                                   const std::function<frames::Progress()>& predicting = {});

}  // namespace halfscope::analyzers
