// SPDX-License-Identifier: Apache-2.0
// Largest magnitudes of tensors without counts. HTML.
#pragma once

#include <string>

#include "analyzers/study.hpp"

namespace halfscope::reports::page {

/// The section; empty where there are none.
std::string peaks_html(const analyzers::Findings& found);

}  // namespace halfscope::reports::page
