// SPDX-License-Identifier: Apache-2.0
// Words for formats that a run could use: FP8 with delayed scaling, and the elements of MX blocks.
#pragma once

#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/finding.hpp"
#include "reports/answer/table.hpp"

namespace halfscope::reports::answer {

/// Returns findings on settings that should differ from the defaults. Empty if none should.
std::vector<Finding> delayed_findings(const analyzers::formats::AmaxHistory& history);
/// Returns delayed_findings() as sentences, or a sentence that the defaults are sufficient.
std::vector<std::string> delayed_sentences(const analyzers::formats::AmaxHistory& history);
/// Returns one row for each length of the history.
Table delayed_table(const analyzers::formats::AmaxHistory& history);

/// For example "In MXFP8 blocks E4M3 keeps more than E5M2 in 11 of 12 gradients, E5M2 in 1: the
/// medians are 31.5 dB in E4M3 and 25.4 dB in E5M2."
std::string mx_gradients_text(const analyzers::formats::MxGradients& found);

}  // namespace halfscope::reports::answer
