// SPDX-License-Identifier: Apache-2.0
// A writer may put a whole step's tensors into one event: reading must not search it for each.
#include <algorithm>
#include <chrono>

#include "halfscope/log/event_file.hpp"
#include "halfscope/log/event_file.pb.h"
#include "log_folder.hpp"

namespace test_crowded_event {

using namespace halfscope;
using namespace halfscope::log;
using namespace log_test;

/// A log of `tensors` records, and the same with all of them in one event.
void write_both(const fs::path& apart, const fs::path& together, int tensors) {
  {
    RunLogWriter writer(apart, {});
    for (int i = 0; i < tensors; ++i) {
      writer.write(record("weight_grad/w" + std::to_string(i), 5, {1.0f, static_cast<float>(i)}));
    }
  }
  proto::Event all;
  all.set_step(5);
  EventReader reader(event_file(apart));
  while (const auto event = reader.next()) {
    if (event->has_summary()) all.mutable_summary()->MergeFrom(event->summary());
  }
  fs::create_directory(together);
  fs::copy_file(apart / "run.json", together / "run.json");
  EventWriter(together / "events.out.tfevents.1").write(all);
}

std::vector<TensorRecord> read(const fs::path& folder) {
  std::vector<TensorRecord> records;
  RunLog(folder).for_each([&](TensorRecord&& record) { records.push_back(std::move(record)); });
  return records;
}

double seconds_to_read(const fs::path& folder) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  static_cast<void>(read(folder));
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TEST_CASE("an event of many tensors reads as those tensors", "[log][run_log]") {
  const Folder folder;
  write_both(folder / "apart", folder / "together", 100);
  auto apart = read(folder / "apart"), together = read(folder / "together");
  const auto by_name = [](const auto& a, const auto& b) { return a.name < b.name; };
  std::sort(apart.begin(), apart.end(), by_name);
  REQUIRE(together.size() == 100);
  for (std::size_t i = 0; i < 100; ++i) {
    CHECK(together[i].name == apart[i].name);
    CHECK(together[i].step == 5);
    CHECK(together[i].table == apart[i].table);
  }
  RunLog log(folder / "together");
  std::vector<std::string> some;
  log.for_each([&](TensorRecord&& record) { some.push_back(record.name); },
               [](const std::string& name, std::int64_t) { return name.ends_with("7"); });
  CHECK(some.size() == 10);
}

TEST_CASE("an event of many tensors is read once, not once a tensor", "[log][run_log]") {
  const Folder folder;
  write_both(folder / "apart", folder / "together", 3000);
  // Once a tensor it took hundreds of times as long.
  CHECK(seconds_to_read(folder / "together") < 20 * seconds_to_read(folder / "apart"));
}

}  // namespace test_crowded_event
