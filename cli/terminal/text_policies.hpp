// SPDX-License-Identifier: Apache-2.0
// Output of `halfscope policies`.
#pragma once

#include <string>

#include "analyzers/replay/policy_study.hpp"

namespace halfscope::cli::terminal {

/// Returns the run's own policy, the lines to paste, the ranking and the warnings. `framework` is
/// --framework as typed. `asked` is true if policies were named on the command line; then the
/// warnings are about all of them.
std::string policies_text(const analyzers::replay::PolicyStudy& study, const std::string& framework,
                          bool asked);

/// Returns all policies with their defaults and sources.
std::string catalogue_text();

}  // namespace halfscope::cli::terminal
