// SPDX-License-Identifier: Apache-2.0
// Notes on the logs: they stand on stderr behind the answer on stdout.
#pragma once

#include "analyzers/frames/source.hpp"

namespace halfscope::cli::options {

/// Keeps notes for print_notes(), each text once.
void note_later(const analyzers::frames::Notes& notes);

/// Writes what was printed to stdout, then the notes that were kept to stderr, each once. main()
/// calls it when the command has ended; whoever prints an error calls it before.
void print_notes();

}  // namespace halfscope::cli::options
