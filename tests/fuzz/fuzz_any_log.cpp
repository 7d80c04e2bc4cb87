// SPDX-License-Identifier: Apache-2.0
// A file, or a folder of files, that may be any kind of log: which kind it is
// found to be, and what is said of all of them together. Event files of the
// folder get their checksums ("events...").
#include "analyzers/readers/kinds.hpp"
#include "analyzers/underflow/underflow.hpp"
#include "events.hpp"
#include "log_reader.hpp"

using namespace halfscope;

HALFSCOPE_FUZZ_TARGET(any_log) {
  const auto files = fuzz::files_in(bytes);
  const fuzz::Folder folder;
  for (const auto& [name, contents] : files) {
    const bool events = name.find("tfevents") != std::string::npos;
    folder.write(name, events ? fuzz::event_file(contents) : std::string(contents));
  }
  const bool one = files.size() == 1;
  const auto log = one ? folder.path() / files.front().first : folder.path();
  for (const analyzers::readers::Kind& kind : analyzers::readers::kinds())
    static_cast<void>(kind.recognises(log));
  fuzz::read_or_refuse(log, [&] {
    const auto found = analyzers::underflow::analyze({log}, analyzers::underflow::Target{},
                                                     analyzers::frames::Selection{});
    for (const analyzers::underflow::TensorFindings& tensor : found.tensors()) {
      fuzz::require(tensor.counts.zero.high <= tensor.counts.total);
      fuzz::require(tensor.counts.finite_nonzero.high <= tensor.counts.total);
    }
    for (const std::string& note : found.notes) {
      fuzz::require(log::printable(note) == note && note.size() < 4096);
    }
  });
}
