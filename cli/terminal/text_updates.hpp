// SPDX-License-Identifier: Apache-2.0
// What becomes of weight updates, for people.
#pragma once

#include <string>

#include "analyzers/study.hpp"
#include "analyzers/underflow/underflow.hpp"

namespace halfscope::cli::terminal {

/// A paragraph over all weights, then the weights that lose the most; empty where no pairs of
/// weight and update are known.
std::string updates_text(const analyzers::underflow::Analysis& analysis);

/// Why no updates are known and what to do, as a clause.
std::string missing_updates_text(const analyzers::underflow::Analysis& analysis);

}  // namespace halfscope::cli::terminal
