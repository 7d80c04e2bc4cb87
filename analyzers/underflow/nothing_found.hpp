// SPDX-License-Identifier: Apache-2.0
// What is said where a selection leaves nothing of a log, or a part of it applies to nothing.
#pragma once

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// Reads the log once more, with nothing left out, and throws log::BadInput saying why nothing was
/// found.
[[noreturn]] void refuse_empty(const readers::Log& log, const frames::Selection& selection);

/// Adds a note for each --role that no tensor has a name for.
void note_unmatched_roles(const frames::Selection& selection, Analysis& analysis);

}  // namespace halfscope::analyzers::underflow
