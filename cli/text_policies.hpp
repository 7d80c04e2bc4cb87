// SPDX-License-Identifier: Apache-2.0
// Replays of loss-scaling policies in the terminal.
#pragma once

#include <string>

#include "analyzers/policy_study.hpp"

namespace halfscope::cli {

/// The answer, the ranked table, better settings, and what to beware of.
std::string policies_text(const analyzers::PolicyStudy& study, double target_underflow);

/// Every policy with defaults and source.
std::string catalogue_text();

}  // namespace halfscope::cli
