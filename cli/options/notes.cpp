// SPDX-License-Identifier: Apache-2.0
#include "cli/options/notes.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "analyzers/frames/whole_tensors.hpp"

namespace halfscope::cli::options {
namespace {

analyzers::frames::Notes& kept_notes() {
  static analyzers::frames::Notes notes;
  return notes;
}

}  // namespace

void note_later(const analyzers::frames::Notes& notes) {
  for (const analyzers::frames::Message& note : notes) {
    analyzers::frames::note_once(kept_notes(), note);
  }
}

void print_notes() {
  std::fflush(stdout);  // main() reports what could not be written
  for (const std::string& note : kept_notes()) fmt::print(stderr, "halfscope: {}\n", note);
  kept_notes().clear();
}

}  // namespace halfscope::cli::options
