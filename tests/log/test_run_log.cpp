// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "halfscope/log/run_log.hpp"

#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <thread>

#include "halfscope/log/event_file.hpp"
#include "halfscope/log/event_file.pb.h"
#include "halfscope/log/safetensors.hpp"
#include "log_folder.hpp"

namespace test_run_log {

using namespace halfscope;
using namespace halfscope::log;
using namespace log_test;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

const std::vector<float> kValues = {0.0f, -0.0f, 1.5f,        -3.0f,    0x1p-25f,
                                    6e4f, 1e-8f, -0x1.2p-14f, INFINITY, NAN};

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

void check_equal(const TensorRecord& read, const TensorRecord& written) {
  CAPTURE(written.name, written.step);
  CHECK(read.name == written.name);
  CHECK(read.step == written.step);
  CHECK(read.shape == written.shape);
  CHECK(read.source_dtype == written.source_dtype);
  CHECK(read.computed_dtype == written.computed_dtype);
  CHECK(read.state == written.state);
  CHECK(read.scale_known == written.scale_known);
  CHECK(same_bits(read.scale, written.scale));
  CHECK(same_bits(read.moments.mean, written.moments.mean));
  CHECK(same_bits(read.moments.sum_squares, written.moments.sum_squares));
  CHECK(read.table == written.table);
}

StepScalars every_scalar() {
  StepScalars full;
  full.step = 3;
  full.loss = 2.25;
  full.learning_rate = 0.1;   // no binary32
  full.loss_scale = 0x1p200;  // above binary32
  full.found_inf = true;
  full.max_abs_weight_grad = 0x1.23456789abcdp-130;
  full.max_abs_activation_grad = kInfinity;
  full.more = {{"accuracy", 0.875}, {"odd tag/\x01<b>\"\xC3\xA9", 1.0 / 3}, {"minus_zero", -0.0}};
  return full;
}

/// All events of a log's one file that hold a summary.
std::vector<proto::Event> events_of(const fs::path& folder) {
  EventReader reader(event_file(folder));
  std::vector<proto::Event> events;
  while (auto event = reader.next()) {
    if (event->has_summary()) events.push_back(std::move(*event));
  }
  return events;
}

const proto::Summary::Value& value_of(const proto::Event& event, const std::string& tag) {
  for (const proto::Summary::Value& value : event.summary().value()) {
    if (value.tag() == tag) return value;
  }
  FAIL("no value " << tag);
  return event.summary().value(0);
}

TEST_CASE("scalars come back to the last bit", "[log][run_log]") {
  const Folder folder;
  const StepScalars full = every_scalar();
  StepScalars few;
  few.step = 4;
  few.found_inf = false;
  few.loss = kNaN;
  {
    RunLogWriter writer(folder.path(), {});
    writer.write(few);  // out of order
    writer.write(full);
    writer.write(StepScalars{});  // nothing to say
  }
  const RunLog log(folder.path());
  CHECK(log.notes().empty());
  const std::vector<StepScalars> read = log.scalars();
  REQUIRE(read.size() == 2);
  CHECK(read[0].step == 3);
  CHECK(read[0].loss == 2.25);
  CHECK(read[0].learning_rate == 0.1);
  CHECK(read[0].loss_scale == 0x1p200);
  CHECK(read[0].found_inf == true);
  CHECK(read[0].max_abs_weight_grad == 0x1.23456789abcdp-130);
  CHECK(read[0].max_abs_activation_grad == kInfinity);
  CHECK(read[0].more == full.more);
  CHECK(std::signbit(read[0].more.at("minus_zero")));
  CHECK(read[1].step == 4);
  CHECK(read[1].found_inf == false);
  REQUIRE(read[1].loss);
  CHECK(std::isnan(*read[1].loss));
  CHECK_FALSE(read[1].learning_rate);
  CHECK_FALSE(read[1].loss_scale);
  CHECK_FALSE(read[1].max_abs_weight_grad);
  CHECK_FALSE(read[1].max_abs_activation_grad);
  CHECK(read[1].more.empty());
}

TEST_CASE("a scalar is a simple_value, with binary64 beside it only where it differs",
          "[log][run_log]") {
  const Folder folder;
  StepScalars scalars;
  scalars.loss = 2.25;
  scalars.learning_rate = 0.1;
  RunLogWriter(folder.path(), {}).write(scalars);
  const std::vector<proto::Event> events = events_of(folder.path());
  REQUIRE(events.size() == 1);
  REQUIRE(events[0].summary().value_size() == 3);
  CHECK(value_of(events[0], "loss").simple_value() == 2.25f);
  CHECK(value_of(events[0], "learning_rate").simple_value() == 0.1f);
  CHECK(value_of(events[0], "exact/learning_rate").tensor().double_val(0) == 0.1);
}

TEST_CASE("tensor records come back whole", "[log][run_log]") {
  const Folder folder;
  std::vector<TensorRecord> written;
  written.push_back(record("weight_grad/conv1.weight", 0, kValues));
  written.back().shape = {5, 1, 2};
  written.back().computed_dtype = Dtype::f16;
  written.back().state = ScaleState::scaled;
  written.back().scale = 65536.0 / 3;
  written.push_back(record("activation_grad/a b/\xE2\x80\xAE<script>\x1B[31m\n", 0, kValues));
  written.back().source_dtype = Dtype::bf16;
  written.back().state = ScaleState::scaled;
  written.back().scale_known = false;
  written.push_back(record("update/empty", 1, {}));
  written.back().shape = {0, 7};
  written.push_back(record("weight/zero", 1, {0.0f, -0.0f}));
  written.back().shape = {};
  written.push_back(record("no_role", 1, {INFINITY, -INFINITY, NAN}));
  written.back().scale = kInfinity;
  written.back().moments = {kNaN, kInfinity};
  written.push_back(record("weight_grad/conv1.weight", 7, {1.0f}));
  written.back().moments.mean = -kInfinity;
  {
    RunLogWriter writer(folder.path(), {});
    for (const TensorRecord& one : written) writer.write(one);
  }
  const RunLog log(folder.path());
  CHECK(log.notes().empty());
  CHECK(log.record_count() == written.size());
  const std::vector<TensorRecord> read = records(log);
  REQUIRE(read.size() == written.size());
  for (std::size_t i = 0; i < read.size(); ++i) check_equal(read[i], written[i]);

  std::vector<std::string> seen;
  log.for_each([&](TensorRecord&& one) { seen.push_back(one.name); },
               [](const std::string& name, std::int64_t step) {
                 return step == 7 || name == "update/empty";
               });
  CHECK(seen == std::vector<std::string>{"update/empty", "weight_grad/conv1.weight"});
}

TEST_CASE("a tensor record is three values of one event, described once", "[log][run_log]") {
  const Folder folder;
  const TensorRecord written = record("weight/w", 5, kValues);
  {
    RunLogWriter writer(folder.path(), {});
    writer.write(written);
    writer.write(written);
  }
  const std::vector<proto::Event> events = events_of(folder.path());
  REQUIRE(events.size() == 2);
  for (const proto::Event& event : events) {
    const bool first = &event == &events[0];
    CHECK(event.step() == 5);
    REQUIRE(event.summary().value_size() == 3);
    const auto& binades = value_of(event, "binades/weight/w");
    CHECK(binades.has_metadata() == first);
    const std::vector<std::int64_t> words = written.table.encode();
    REQUIRE(binades.tensor().tensor_content().size() == words.size() * 8);
    CHECK(binades.tensor().tensor_shape().dim(0).size() == static_cast<std::int64_t>(words.size()));
    CHECK(binades.tensor().tensor_content()[0] == 1);  // the layout's version, little-endian
    const auto& statistics = value_of(event, "statistics/weight/w");
    CHECK(statistics.has_metadata() == first);
    const auto json = nlohmann::json::parse(statistics.tensor().string_val(0));
    CHECK(json.at("max_abs") == 60000.0);
    CHECK(json.at("shape") == nlohmann::json::array({10}));
    if (first) {
      CHECK(binades.metadata().plugin_data().plugin_name() == "halfscope");
      CHECK(binades.metadata().data_class() == 2);
    }
  }
}

TEST_CASE("the histogram has a bucket a binade and sign, and one for zeros", "[log][run_log]") {
  const Folder folder;
  // -3 and -2 in (-4, -2]; 1.5 in [1, 2); 5 in [4, 8); zeros below the smallest binade.
  const std::vector<float> values = {-3.0f, -2.0f, 0.0f, -0.0f, 0.0f, 1.5f, 5.0f, NAN, INFINITY};
  RunLogWriter(folder.path(), {}).write(record("weight/w", 0, values));
  const proto::HistogramProto histogram =
      value_of(events_of(folder.path()).at(0), "weight/w").histo();
  const std::vector<double> limits(histogram.bucket_limit().begin(),
                                   histogram.bucket_limit().end());
  const std::vector<double> counts(histogram.bucket().begin(), histogram.bucket().end());
  CHECK(limits == std::vector<double>{-4, -2, -1, 1, 2, 4, 8});
  CHECK(counts == std::vector<double>{0, 2, 0, 3, 1, 0, 1});
  CHECK(histogram.num() == 9);
  CHECK(histogram.min() == -4);  // the table keeps the largest magnitude of both signs only
  CHECK(histogram.max() == 5);
  CHECK(histogram.sum() == Approx(-3 - 2 + 1.5 + 5));
  CHECK(histogram.sum_squares() == Approx(9 + 4 + 2.25 + 25));
}

TEST_CASE("values by tag are a map that takes a pointer where it is empty", "[log]") {
  log::TagValues values;
  CHECK(sizeof values == sizeof(void*));
  CHECK(values.empty());
  CHECK(values.find("a") == values.end());
  values["b"] = 2;
  values.insert_or_assign("a", 1);
  const log::TagValues copy = values;
  values.clear();
  CHECK(values == log::TagValues());
  CHECK(copy == log::TagValues{{"a", 1}, {"b", 2}});
  CHECK(copy.begin()->first == "a");
  CHECK((copy.size() == 2 && copy.contains("b") && copy.at("b") == 2));
}

TEST_CASE("a step that was run twice counts once, the last time", "[log][run_log]") {
  const Folder folder;
  const auto loss = [](std::int64_t step, double value) {
    StepScalars scalars;
    scalars.step = step;
    scalars.loss = value;
    return scalars;
  };
  {
    RunLogWriter writer(folder.path(), {});
    StepScalars first = loss(1, 10);
    first.learning_rate = 0.1;
    writer.write(first);
    writer.write(loss(2, 20));
    writer.write(record("weight/w", 1, {1.0f}));
    writer.write(record("weight/w", 2, {2.0f}));
    writer.write(record("weight/w", 1, {4.0f}));
    writer.write(loss(1, 11));
  }
  const RunLog log(folder.path());
  REQUIRE(log.scalars().size() == 2);
  CHECK(log.scalars()[0].loss == 11.0);
  CHECK(log.scalars()[0].learning_rate == 0.1);  // a tag that was not written again
  CHECK(log.scalars()[1].loss == 20.0);
  const std::vector<TensorRecord> read = records(log);
  REQUIRE(read.size() == 2);
  check_equal(read[0], record("weight/w", 2, {2.0f}));
  check_equal(read[1], record("weight/w", 1, {4.0f}));
}

TEST_CASE("event files are read in name order, a restart mark drops what it repeats",
          "[log][run_log]") {
  const Folder folder, second;
  {
    RunLogWriter writer(folder.path(), {}), later(second.path(), {});
    for (std::int64_t step = 0; step < 4; ++step) {
      StepScalars scalars;
      scalars.step = step;
      scalars.loss = 1.0;
      writer.write(scalars);
      writer.write(record("weight/w", step, {1.0f}));
      scalars.loss = 2.0;
      if (step == 2) later.write(scalars);
      if (step == 2) later.write(record("weight/w", step, {8.0f}));
    }
  }
  fs::copy_file(event_file(second.path()), folder / "events.out.tfevents.99999999999.later");
  {
    const RunLog log(folder.path());
    REQUIRE(log.scalars().size() == 4);
    CHECK(log.scalars()[2].loss == 2.0);
    CHECK(log.scalars()[3].loss == 1.0);
    CHECK(records(log).size() == 4);
    check_equal(records(log).back(), record("weight/w", 2, {8.0f}));
  }
  {
    EventWriter writer(folder / "events.out.tfevents.99999999998.mark");
    proto::Event restart;
    restart.set_step(2);
    restart.mutable_session_log()->set_status(proto::SessionLog::START);
    writer.write(restart);
  }
  const RunLog log(folder.path());
  REQUIRE(log.scalars().size() == 3);
  CHECK(log.scalars()[2].loss == 2.0);
  CHECK(records(log).size() == 3);
}

TEST_CASE("samples are safetensors files by step", "[log][run_log]") {
  const Folder folder;
  Manifest manifest;
  manifest.gradients = ScaleState::scaled;
  const std::vector<float> values = {1.0f, 2.0f, 3.0f};
  {
    RunLogWriter writer(folder.path(), manifest);
    writer.write_sample(12, {{"weight/w", {3}, view(values)}}, {{"scale", "65536"}});
    writer.write_sample(1234567, {{"weight/w", {3}, view(values)}});
  }
  put_bytes(folder / "tensors/step-12.safetensors", "too few digits");
  put_bytes(folder / "tensors/step-000x12.safetensors", "no number");
  put_bytes(folder / "tensors/step-99999999999999999999.safetensors", "no step");
  const RunLog log(folder.path());
  const std::map<std::int64_t, fs::path> expected = {
      {12, folder / "tensors/step-000012.safetensors"},
      {1234567, folder / "tensors/step-1234567.safetensors"}};
  CHECK(log.samples() == expected);
  const Safetensors file(log.samples().at(12));
  REQUIRE(file.names().size() == 1);
  CHECK(file.names()[0] == "weight/w");
  CHECK(file.metadata().at("scale") == "65536");
  CHECK(file.metadata().at("gradients") == "scaled");
  CHECK(file.metadata().at("step") == "12");
  CHECK(file.metadata().at("schema") == "1");
}

TEST_CASE("what a log cannot hold is refused before anything is written", "[log][run_log]") {
  const Folder folder;
  RunLogWriter writer(folder.path(), {});
  const std::string before = bytes_of(event_file(folder.path()));
  const std::vector<std::string> tags = {"loss",      "found_inf",    "max_abs/weight_grad",
                                         "binades/w", "statistics/w", "exact/loss",
                                         "",          "\xFF\xFE text"};
  for (const std::string& tag : tags) {
    CAPTURE(tag);
    StepScalars scalars;
    scalars.more[tag] = 1;
    CHECK(mentions(bad_input([&] { writer.write(scalars); }), "scalar '"));
  }
  StepScalars early;
  early.step = -1;
  early.loss = 1;
  CHECK(mentions(bad_input([&] { writer.write(early); }), "step -1"));
  CHECK(mentions(bad_input([&] { writer.write(record("weight/\xC3(", 0, {1.0f})); }), "UTF-8"));
  CHECK(mentions(bad_input([&] { writer.write(record("", 0, {1.0f})); }), "empty"));
  CHECK(mentions(bad_input([&] { writer.write(record("weight/w", -5, {1.0f})); }), "step -5"));
  CHECK(mentions(bad_input([&] { writer.write_sample(-1, {}); }), "step -1"));
  CHECK(bytes_of(event_file(folder.path())) == before);
}

TEST_CASE("several threads may write", "[log][run_log]") {
  const Folder folder;
  constexpr std::int64_t kSteps = 300;
  {
    RunLogWriter writer(folder.path(), {});
    const TensorRecord same = record("", 0, {1.0f});
    std::vector<std::thread> threads;
    std::atomic<int> ready = 0;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (++ready; ready < 4;) std::this_thread::yield();
        for (std::int64_t step = 0; step < kSteps; ++step) {
          TensorRecord one = same;
          one.name = "weight/" + std::to_string(step);  // all threads at one new tag
          writer.write(one);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  CHECK(RunLog(folder.path()).notes().empty());
  std::map<std::string, int> described;
  const std::vector<proto::Event> events = events_of(folder.path());
  for (const proto::Event& event : events) {
    for (const proto::Summary::Value& value : event.summary().value()) {
      if (value.has_metadata()) ++described[value.tag()];
    }
  }
  CHECK(events.size() == 4 * kSteps);
  CHECK(described.size() == 2 * kSteps);
  for (const auto& [tag, times] : described) REQUIRE(times == 1);
}

TEST_CASE("roles have names, and a name's first part is its role", "[log][run_log]") {
  for (int i = 0; i < static_cast<int>(Role::unknown); ++i) {
    const Role role = static_cast<Role>(i);
    CHECK(find_role(name_of(role)) == role);
    CHECK(role_in_name(std::string(name_of(role)) + "/layer.0/weight") == role);
  }
  CHECK(name_of(Role::optimizer_state) == "optimizer_state");
  CHECK_FALSE(find_role("unknown"));
  CHECK_FALSE(find_role("weight_gradient"));
  CHECK_FALSE(role_in_name("weight_grad"));
  CHECK_FALSE(role_in_name("conv1/weight_grad"));
  std::string gradients;
  for (int i = 0; i <= static_cast<int>(Role::unknown); ++i) {
    const Role role = static_cast<Role>(i);
    if (is_gradient(role)) gradients += std::string(name_of(role)) + " ";
  }
  CHECK(gradients == "weight_grad activation_grad local_weight_grad ");
}

}  // namespace test_run_log
