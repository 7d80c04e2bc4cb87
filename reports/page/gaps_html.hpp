// SPDX-License-Identifier: Apache-2.0
// What a log could not tell. HTML.
#pragma once

#include <string>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::reports::page {

/// The block; empty where nothing is missing.
std::string gaps_html(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::reports::page
