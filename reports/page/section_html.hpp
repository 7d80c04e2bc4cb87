// SPDX-License-Identifier: Apache-2.0
// Conversion of the answer's sections and captions to HTML.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "analyzers/underflow/underflow.hpp"
#include "reports/answer/captions.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::page {

/// Returns title, sentences as a list, and tables; an empty string for an empty section.
std::string section_html(const answer::Section& section);

/// Returns a list with one item per sentence; an empty string for no sentences.
std::string sentences_html(const std::vector<std::string>& sentences);

/// Returns the text of a caption without its title.
std::string note_html(const answer::Caption& caption);
/// Returns a chart below its caption. `more` is further attributes of the figure element.
std::string chart_html(const answer::Caption& caption, std::string_view chart,
                       std::string_view more = "");

/// Returns one block per log. The page shows the block of the selected log.
std::string per_log(const analyzers::underflow::Analysis& analysis,
                    const std::function<std::string(std::size_t log)>& block);

}  // namespace halfscope::reports::page
