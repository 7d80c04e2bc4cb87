// SPDX-License-Identifier: Apache-2.0
// The top of a page: what is lost, which scale to use, what limits it. HTML.
#pragma once

#include <string>

#include "analyzers/study.hpp"

namespace halfscope::reports {

/// Whether what underflowed is among the zeros.
bool hides_underflow(const analyzers::Analysis& analysis);

/// Why a run that diverges is given no scale, and what helps: "the largest gradient, ...".
std::string divergence_text(const analyzers::Recommendation& advice);

/// What stays of the values a loss scale acts on, and what to do; names are escaped.
std::string summary_html(const analyzers::Study& study);

/// The settings to paste, one framework at a time; empty where no scale is recommended.
std::string settings_html(const analyzers::Analysis& analysis,
                          const analyzers::Recommendation& advice);

}  // namespace halfscope::reports
