// SPDX-License-Identifier: Apache-2.0
// Replays of loss-scaling policies in the terminal.
#pragma once

#include <string>

#include "analyzers/replay/policy_study.hpp"

namespace halfscope::cli::terminal {

/// What the run did and what to paste, the ranked table, and what to beware of: of all policies
/// where they were `asked` for by name. `framework`: --framework as typed.
std::string policies_text(const analyzers::replay::PolicyStudy& study, const std::string& framework,
                          bool asked);

/// Every policy with defaults and source.
std::string catalogue_text();

}  // namespace halfscope::cli::terminal
