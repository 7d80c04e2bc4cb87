// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file that may be compressed, and in any encoding.
#include "analyzers/readers/input/content.hpp"
#include "analyzers/readers/input/open_input.hpp"
#include "input.hpp"

using namespace halfscope;

HALFSCOPE_FUZZ_TARGET(unpack) {
  const fuzz::MemoryFile file(fuzz::Cursor(bytes).rest());
  const auto opened = analyzers::readers::input::open_input(file.path());
  fuzz::require(opened->is_regular());
  const log::FileRemarks& remarks = opened->remarks();
  for (const std::string& note : remarks.notes) {
    fuzz::require(log::printable(note) == note && note.size() < 4096);
    fuzz::require(note.starts_with(file.path().string()));
  }
  fuzz::require(remarks.refusal.empty() || opened->size() == bytes.size());
  const auto content = analyzers::readers::input::content_of(*opened);
  fuzz::require(!content.is.empty() && !content.way_out.empty());
  fuzz::require(log::printable(content.is) == content.is);
  static_cast<void>(analyzers::readers::input::is_foreign(*opened));
}
