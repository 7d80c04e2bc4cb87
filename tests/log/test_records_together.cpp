// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>

#include "halfscope/log/event_file.hpp"
#include "halfscope/log/event_file.pb.h"
#include "halfscope/log/run_log.hpp"
#include "log_folder.hpp"

namespace test_records_together {

using namespace halfscope;
using namespace halfscope::log;
using namespace log_test;

TEST_CASE("records written together are read as each alone, and all or none are there",
          "[log][run_log]") {
  const Folder folder;
  RunLogWriter writer(folder.path(), {});
  const std::string before = bytes_of(event_file(folder.path()));
  std::vector<TensorRecord> records = {record("weight/a", 0, {1.0f, -0.0f}),
                                       record("weight/b", 0, {2.0f}), record("", 0, {3.0f})};
  CHECK(mentions(bad_input([&] { writer.write(records); }), "empty"));
  CHECK(bytes_of(event_file(folder.path())) == before);
  records.back() = record("weight/a", 1, {INFINITY, NAN});
  writer.write(records);
  std::size_t next = 0;
  const RunLog log(folder.path());
  log.for_each([&](TensorRecord&& read) {
    const TensorRecord& written = records.at(next++);
    CHECK(read.name == written.name);
    CHECK(read.step == written.step);
    CHECK(read.shape == written.shape);
    CHECK(read.table == written.table);
  });
  CHECK(next == records.size());
  std::map<std::string, int> described;
  EventReader reader(event_file(folder.path()));
  while (const auto event = reader.next()) {
    for (const proto::Summary::Value& value : event->summary().value()) {
      if (value.has_metadata()) ++described[value.tag()];
    }
  }
  CHECK(described == std::map<std::string, int>{{"binades/weight/a", 1},
                                                {"binades/weight/b", 1},
                                                {"statistics/weight/a", 1},
                                                {"statistics/weight/b", 1}});
}

}  // namespace test_records_together
