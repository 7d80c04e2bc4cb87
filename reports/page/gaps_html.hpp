// SPDX-License-Identifier: Apache-2.0
// HTML about the facts that a log does not contain.
#pragma once

#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::page {

/// Returns the block; an empty string if nothing is missing.
std::string gaps_html(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::reports::page
