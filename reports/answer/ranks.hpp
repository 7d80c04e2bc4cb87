// SPDX-License-Identifier: Apache-2.0
// Words for the ranks of a run: which differ and by how much, or that they agree.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/captions.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::answer {

/// Returns a finding on the worst rank, or that all agree; empty if nothing can be compared.
std::optional<Finding> ranks_finding(const analyzers::ranks::RankStudy& study);

/// Returns one section for each log. If the ranks agree, it is one sentence without a title.
std::vector<Section> ranks_sections(const analyzers::Findings& found);
/// Returns the sections of the logs in which a rank differs.
std::vector<Section> differing_ranks(const analyzers::Findings& found);

/// Returns a summary that the page shows while the section is folded.
std::string ranks_digest(const analyzers::Findings& found);

/// For example "weight gradients".
std::string_view values_name(log::Role role);

Caption rank_strip_caption(log::Role role);
Caption rank_map_caption(log::Role role);

}  // namespace halfscope::reports::answer
