// SPDX-License-Identifier: Apache-2.0
// A run log that is gone on with.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>

#include "catch.hpp"
#include "halfscope/log/run_log.hpp"
#include "temp_folder.hpp"

namespace test_restart {

using namespace halfscope;
using namespace halfscope::log;
using halfscope::test::message_of;
using halfscope::test::TempFolder;

Manifest manifest(const char* run) {
  Manifest made;
  (*made.about)["run"] = run;
  return made;
}

void write_step(RunLogWriter& writer, std::int64_t step, double loss) {
  StepScalars scalars;
  scalars.step = step;
  scalars.loss = loss;
  writer.write(scalars);
  const std::vector<float> values = {static_cast<float>(loss)};
  TensorRecord record;
  record.name = "weight/w";
  record.step = step;
  record.shape = {1};
  record.table = count_binades(view_of(values));
  writer.write(record);
  writer.write_sample(step, {{"weight/w", {1}, view_of(values)}});
}

std::vector<std::pair<std::int64_t, double>> losses(const RunLog& log) {
  std::vector<std::pair<std::int64_t, double>> all;
  for (const StepScalars& s : log.scalars()) all.emplace_back(s.step, *s.loss);
  return all;
}

TEST_CASE("a log that goes on has the steps before, and from there the new ones") {
  const TempFolder temp;
  const auto folder = temp / "run";
  {
    RunLogWriter writer(folder, manifest("first"));
    for (int step = 0; step < 6; ++step) write_step(writer, step, 1 + step);
  }
  for (int again = 0; again < 12; ++again) {  // names of event files stay in order
    RunLogWriter writer(folder, manifest("again"), 3);
    CHECK(losses(RunLog(folder)).size() == 3);
    write_step(writer, 3, 100 + again);
  }
  const RunLog log(folder);
  CHECK(losses(log) ==
        std::vector<std::pair<std::int64_t, double>>{{0, 1}, {1, 2}, {2, 3}, {3, 111}});
  CHECK(log.record_count() == 4);
  CHECK(log.manifest().about->at("run") == "again");
  CHECK(log.notes().empty());
  const auto samples = log.samples();
  CHECK(samples.size() == 4);
  CHECK(samples.rbegin()->first == 3);
}

TEST_CASE("going on comes after event files of later names, and needs a log") {
  const TempFolder temp;
  const auto folder = temp / "run";
  { RunLogWriter(folder, manifest("first")); }
  const auto later = folder / "events.out.tfevents.4000000000.halfscope.9.9";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().find("tfevents") != std::string::npos) {
      std::filesystem::rename(entry.path(), later);
    }
  }
  CHECK(message_of([&] { RunLogWriter(folder, manifest("again"), 0); }).find("rename it") !=
        std::string::npos);
  CHECK(message_of([&] {
          RunLogWriter(temp / "none", manifest("again"), 0);
        }).find("is not a run log") != std::string::npos);
  CHECK(message_of([&] { RunLogWriter(folder, manifest("again"), -1); }).find("count from 0") !=
        std::string::npos);
}

}  // namespace test_restart
