// SPDX-License-Identifier: Apache-2.0
// Errors and notes for selections that match nothing in a log.
#pragma once

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// Reads the log once more without a selection and throws log::BadInput with the reason why nothing
/// was found.
[[noreturn]] void refuse_empty(const readers::Log& log, const frames::Selection& selection);

/// Adds a note for each --role whose pattern matches no tensor.
void note_unmatched_roles(const frames::Selection& selection, Analysis& analysis);

}  // namespace halfscope::analyzers::underflow
