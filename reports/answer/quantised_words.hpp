// SPDX-License-Identifier: Apache-2.0
// What a run lost in FP8 or FP4, in words, and the lines that keep layers in BF16.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/finding.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// What is to be said of a log first, and what to do.
Finding quantised_finding(const analyzers::formats::QuantisedLog& log);

/// Elements above the largest value of the format, for more than a few steps; empty where none are.
std::optional<Finding> clipped_finding(const analyzers::formats::QuantisedLog& log);

/// A section a log: the finding, the limits, lines to paste, tables.
std::vector<Section> quantised_sections(const analyzers::Findings& found);

/// Lines that keep layers in BF16: of every log that has such layers. In quantised_paste.cpp.
std::vector<PasteLines> keep_pastes(const analyzers::Findings& found);
std::vector<PasteLines> keep_pastes(const analyzers::formats::QuantisedLog& log);

/// "FP8 block scaling"; of the run's own "FP8".
std::string_view people_say(analyzers::frames::Recipe recipe);

/// One line for a folded section.
std::string quantised_digest(const analyzers::Findings& found);

/// "gradients", "gradients in MXFP8, columnwise": what a heat map is of.
std::string map_title(const analyzers::formats::QuantisedTensor& tensor);

}  // namespace halfscope::reports::answer
