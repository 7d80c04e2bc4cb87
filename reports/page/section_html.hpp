// SPDX-License-Identifier: Apache-2.0
// Sections and captions of the answer in HTML.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "analyzers/underflow/underflow.hpp"
#include "reports/answer/captions.hpp"
#include "reports/answer/section.hpp"

namespace halfscope::reports::page {

/// Title, a list of the sentences, tables; empty where the section is.
std::string section_html(const answer::Section& section);

/// A list, one sentence an item; empty without any.
std::string sentences_html(const std::vector<std::string>& sentences);

/// What a caption says, without its title.
std::string note_html(const answer::Caption& caption);
/// A chart below its caption. more: further attributes of the figure.
std::string chart_html(const answer::Caption& caption, std::string_view chart,
                       std::string_view more = "");

/// One block a log, of which the page shows the chosen one's.
std::string per_log(const analyzers::underflow::Analysis& analysis,
                    const std::function<std::string(std::size_t log)>& block);

}  // namespace halfscope::reports::page
