// SPDX-License-Identifier: Apache-2.0
// HTML of the figure at the top of the page: all gradients by magnitude.
#pragma once

#include <string>

#include "analyzers/recommend/recommend.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::page {

/// Returns the figure and a caption for each log that has gradients, which is also the chart's text
/// alternative. Returns an empty string if no log has finite nonzero gradients.
std::string gradients_html(const analyzers::underflow::Analysis& analysis,
                           const analyzers::recommend::Recommendation& advice);

}  // namespace halfscope::reports::page
