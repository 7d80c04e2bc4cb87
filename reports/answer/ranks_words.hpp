// SPDX-License-Identifier: Apache-2.0
// What is said of the ranks of a run: which differ, by how much, or that they agree.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/captions.hpp"
#include "reports/answer/finding.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Of the ranks of one log: the worst, or that all agree. Empty where nothing can be compared.
std::optional<Finding> ranks_finding(const analyzers::ranks::RankStudy& study);

/// A section a log. Where ranks agree it is one sentence, without a title.
std::vector<Section> ranks_sections(const analyzers::Findings& found);
/// Of the logs alone in which a rank differs.
std::vector<Section> differing_ranks(const analyzers::Findings& found);

/// One line for a folded section.
std::string ranks_digest(const analyzers::Findings& found);

/// "weight gradients"
std::string_view values_name(log::Role role);

Caption rank_strip_caption(log::Role role);
Caption rank_map_caption(log::Role role);

}  // namespace halfscope::reports::answer
