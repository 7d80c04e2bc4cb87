// SPDX-License-Identifier: Apache-2.0
// Overflow, its cause and the room left, for the terminal.
#pragma once

#include <string>

#include "analyzers/overflow/overflow.hpp"

namespace halfscope::cli::terminal {

/// The first events with their cause and what led there, then the tensors with the least room.
std::string overflow_text(const analyzers::underflow::Analysis& analysis,
                          const analyzers::overflow::OverflowFindings& found);

}  // namespace halfscope::cli::terminal
