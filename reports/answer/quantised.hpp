// SPDX-License-Identifier: Apache-2.0
// Sentences on what a run lost in FP8 or FP4, and lines that keep layers in BF16.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Returns one section for each log: the findings, the limits, lines to paste, tables.
std::vector<Section> quantised_sections(const analyzers::Findings& found);

/// Returns lines that keep layers in BF16, for each log. Defined in quantised_paste.cpp.
std::vector<PasteLines> keep_pastes(const analyzers::Findings& found);
std::vector<PasteLines> keep_pastes(const analyzers::formats::QuantisedLog& log);
std::vector<PasteLines> keep_pastes(const std::vector<std::string>& layers);
/// Returns such lines for the frameworks that have the recipe's kind of scales: Transformer Engine,
/// torchao, torchtitan, Megatron.
std::vector<PasteLines> recipe_pastes(const std::vector<std::string>& layers,
                                      const block::Recipe& recipe);

/// Returns for example "FP8 block scaling"; "FP8" for the run's own recipe.
std::string_view people_say(analyzers::frames::Recipe recipe);

/// Returns a summary that the page shows while the section is folded.
std::string quantised_digest(const analyzers::Findings& found);

/// Returns the tensors of a heat map: "gradients", "gradients in MXFP8, columnwise".
std::string map_title(const analyzers::formats::QuantisedTensor& tensor);

}  // namespace halfscope::reports::answer
