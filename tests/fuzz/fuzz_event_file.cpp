// SPDX-License-Identifier: Apache-2.0
// Any bytes as an event file: every record that is whole comes back, at its place.
#include <cstring>

#include "events.hpp"
#include "halfscope/log/event_file.hpp"
#include "halfscope/log/event_file.pb.h"

using namespace halfscope;

namespace {

/// How many records of a file whose framing is right are events.
std::size_t events_in(std::string_view file) {
  std::size_t events = 0;
  while (file.size() >= 16) {
    std::uint64_t length = 0;
    std::memcpy(&length, file.data(), sizeof length);
    log::proto::Event event;
    events += event.ParseFromArray(file.data() + 12, static_cast<int>(length)) ? 1 : 0;
    file.remove_prefix(16 + length);
  }
  return events;
}

}  // namespace

HALFSCOPE_FUZZ_TARGET(event_file) {
  const std::string content = fuzz::event_file(fuzz::Cursor(bytes).rest());
  const bool framed = bytes.empty() || bytes[0] != 'R';
  const fuzz::MemoryFile file(content);
  fuzz::read_or_refuse(file.path(), [&] {
    log::EventReader reader(file.path());
    std::size_t events = 0;
    std::uint64_t end = 0;  // of the record before, at least
    while (reader.next()) {
      fuzz::require(reader.offset() >= end && reader.offset() + 16 <= content.size());
      end = reader.offset() + 16;
      ++events;
    }
    fuzz::require(!framed || events == events_in(content));
    for (const std::string& note : reader.notes()) {
      fuzz::require(note.starts_with(file.path().string()) && log::printable(note) == note);
    }
  });
}
