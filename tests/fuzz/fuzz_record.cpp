// SPDX-License-Identifier: Apache-2.0
// Records. The input's parts are items of one part of a log, which gets its beginning, end and
// checksums here; after 'R' it is the file.
#include "analyzers/readers/kinds.hpp"
#include "analyzers/readers/record/record.pb.h"
#include "analyzers/readers/record/record_file.hpp"
#include "analyzers/readers/record/record_log.hpp"
#include "events.hpp"
#include "log_reader.hpp"

using namespace halfscope;
namespace readers = analyzers::readers;

namespace {

std::string record_of(fuzz::Cursor in) {
  if (in.number(1) == 'R') return std::string(in.rest());
  halfscope::record::Item begin, end;
  begin.mutable_begin()->set_log("log");
  begin.mutable_begin()->set_of(1);
  std::string items;
  while (!in.done()) {
    items += fuzz::record(in.part());
    end.mutable_end()->set_items(end.end().items() + 1);
  }
  end.mutable_end();
  return readers::record::file_header() + fuzz::record(begin.SerializeAsString()) + items +
         fuzz::record(end.SerializeAsString());
}

}  // namespace

HALFSCOPE_FUZZ_TARGET(record) {
  const fuzz::Folder folder;
  folder.write("log.hst", record_of(fuzz::Cursor(bytes)));
  fuzz::read_log(readers::record::is_record, readers::record::read_record,
                 folder.path() / "log.hst");
  fuzz::read_or_refuse(folder.path() / "log.hst", [&] {
    const readers::Log log(folder.path() / "log.hst");
    if (log.kinds().empty()) return;
    readers::for_each_whole_count(log, {},
                                  {[](const auto&) {}, [](const auto&) {}, [](const auto&) {}});
  });
}
