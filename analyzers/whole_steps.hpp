// SPDX-License-Identifier: Apache-2.0
// What whole tensors add to an analysis of tables.
#pragma once

#include "analyzers/formats/format_fit.hpp"
#include "analyzers/study.hpp"

namespace halfscope::analyzers {

/// Reads the logs' whole tensors, each once, for everything that is asked of them: updates
/// (updates::UpdatePass), formats or sums (formats::WholePass); gives the bounds of attention
/// scores. Holds no more at a time than a weight and what its update is made of. Throws
/// log::BadInput.
std::vector<overflow::AttentionScores> add_whole_steps(underflow::Analysis& analysis,
                                                       const frames::Selection& selection,
                                                       const Passes& passes,
                                                       const formats::FitOptions& options = {},
                                                       const frames::Progress& progress = {},
                                                       const readers::Logs& opened = {});

}  // namespace halfscope::analyzers
