// SPDX-License-Identifier: Apache-2.0
// A run log's folder: the first part is its manifest, the rest its event file.
#include "events.hpp"
#include "halfscope/log/run_log.hpp"

using namespace halfscope;

HALFSCOPE_FUZZ_TARGET(run_log) {
  fuzz::Cursor input(bytes);
  const fuzz::Folder folder;
  folder.write("run.json", input.part());
  folder.write("events.out.tfevents.1", fuzz::event_file(input.rest()));
  fuzz::read_or_refuse(folder.path(), [&] {
    const log::RunLog read(folder.path());
    std::size_t records = 0;
    read.for_each([&](log::TensorRecord&& record) {
      fuzz::require(record.scale > 0);
      fuzz::require(BinadeTable::decode(record.table.encode()) == record.table);
      ++records;
    });
    fuzz::require(records == read.record_count());
    for (const log::StepScalars& scalars : read.scalars())
      fuzz::require(scalars.more.size() < 65536);
    for (const std::string& note : read.notes()) {
      fuzz::require(note.starts_with(folder.path().string()) && log::printable(note) == note);
    }
  });
}
