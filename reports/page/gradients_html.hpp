// SPDX-License-Identifier: Apache-2.0
// The picture at the top of the page: all gradients by magnitude. HTML.
#pragma once

#include <string>

#include "analyzers/recommend/recommend.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::page {

/// The figure and, for each log that has gradients, what it shows in one line: also the chart's
/// text alternative. Empty where no log has finite nonzero gradients.
std::string gradients_html(const analyzers::underflow::Analysis& analysis,
                           const analyzers::recommend::Recommendation& advice);

}  // namespace halfscope::reports::page
