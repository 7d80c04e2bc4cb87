// SPDX-License-Identifier: Apache-2.0
#include "cli/options/notes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <span>

#include "analyzers/frames/whole_tensors.hpp"

namespace halfscope::cli::options {
namespace {

constexpr std::size_t kMostNotes = 10;

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
  analyzers::frames::Notes& notes = kept_notes();
  const std::size_t shown = std::min(notes.size(), kMostNotes);
  for (const std::string& note : std::span(notes).first(shown)) {
    fmt::print(stderr, "halfscope: {}\n", note);
  }
  if (shown < notes.size()) {
    fmt::print(stderr,
               "halfscope: and {} more notes; 'halfscope analyze LOG --json -' prints them all\n",
               notes.size() - shown);
  }
  notes.clear();
}

}  // namespace halfscope::cli::options
