// SPDX-License-Identifier: Apache-2.0
// Formats that a run could use, in words: FP8 with delayed scaling, and the elements of MX blocks.
#pragma once

#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/finding.hpp"
#include "reports/answer/table.hpp"

namespace halfscope::reports::answer {

/// What is to be set otherwise than by default; nothing where the default serves.
std::vector<Finding> delayed_findings(const analyzers::formats::AmaxHistory& history);
/// The same as sentences, or that the default serves.
std::vector<std::string> delayed_sentences(const analyzers::formats::AmaxHistory& history);
/// A row a length of the history.
Table delayed_table(const analyzers::formats::AmaxHistory& history);

/// "In MXFP8 blocks E4M3 keeps more than E5M2 in 11 of 12 gradients, E5M2 in 1; the medians are
/// 31.5 dB and 25.4 dB."
std::string mx_gradients_text(const analyzers::formats::MxGradients& found);

}  // namespace halfscope::reports::answer
