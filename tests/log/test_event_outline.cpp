// SPDX-License-Identifier: Apache-2.0
// Outlines against the protobuf library, which reads the same messages whole.
#include "halfscope/log/event_outline.hpp"

#include <random>
#include <string>

#include "catch.hpp"
#include "halfscope/log/event_file.pb.h"

namespace test_event_outline {

using namespace halfscope::log;
using Kind = ValueOutline::Kind;

void add_value(proto::Summary& summary, std::mt19937& random) {
  proto::Summary::Value& value = *summary.add_value();
  value.set_tag(std::string(random() % 40, 't'));
  if (random() % 2 == 0) {
    value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("histograms");
    value.mutable_metadata()->mutable_plugin_data()->set_content("...");
    value.mutable_metadata()->set_display_name("shown");
  }
  switch (random() % 3) {
    case 0: value.set_simple_value(static_cast<float>(random())); break;
    case 1:
      for (std::size_t i = random() % 50; i > 0; --i) value.mutable_histo()->add_bucket(1);
      value.mutable_histo()->set_num(3);
      break;
    default: value.mutable_tensor()->add_double_val(static_cast<double>(random()));
  }
}

proto::Event random_event(std::mt19937& random) {
  proto::Event event;
  event.set_wall_time(1.5);
  event.set_step(static_cast<std::int64_t>(random()) - (std::int64_t{1} << 31));
  if (random() % 5 == 0) {
    event.mutable_session_log()->set_status(proto::SessionLog::START);
    return event;
  }
  for (std::size_t i = 1 + random() % 4; i > 0; --i) add_value(*event.mutable_summary(), random);
  return event;
}

void check_same(const EventOutline& outline, const proto::Event& event) {
  CHECK(outline.step == event.step());
  CHECK(outline.starts == (event.session_log().status() == proto::SessionLog::START));
  REQUIRE(outline.values.size() == static_cast<std::size_t>(event.summary().value_size()));
  for (std::size_t i = 0; i < outline.values.size(); ++i) {
    const ValueOutline& found = outline.values[i];
    const proto::Summary::Value& value = event.summary().value(static_cast<int>(i));
    CHECK(found.tag == value.tag());
    CHECK(found.plugin == value.metadata().plugin_data().plugin_name());
    CHECK((found.kind == Kind::scalar) == value.has_simple_value());
    CHECK((found.kind == Kind::histogram) == value.has_histo());
    CHECK((found.kind == Kind::tensor) == value.has_tensor());
    CHECK(found.scalar == value.simple_value());
    if (value.has_histo()) CHECK(found.body == value.histo().SerializeAsString());
    if (value.has_tensor()) CHECK(found.body == value.tensor().SerializeAsString());
  }
}

TEST_CASE("an outline has what protobuf reads", "[log][event_outline]") {
  std::mt19937 random(1);
  EventOutline outline;  // one for all: nothing of an event stays
  for (int round = 0; round < 300; ++round) {
    const proto::Event event = random_event(random);
    const std::string message = event.SerializeAsString();
    REQUIRE(outline.read(message));
    check_same(outline, event);
  }
}

TEST_CASE("fields may come in any order, and unknown ones between", "[log][event_outline]") {
  const std::string step("\x10\x2A", 2), summary("\x2A\x07\x0A\x05\x0A\x01t\x2A\x00", 9);
  const std::string group("\xA3\x06\x08\x01\xA4\x06", 6), text("\x1A\x02hi", 4);
  const std::string message = summary + group + text + step;
  EventOutline outline;
  REQUIRE(outline.read(message));
  CHECK(outline.step == 42);
  REQUIRE(outline.values.size() == 1);
  CHECK(outline.values[0].tag == "t");
  CHECK(outline.values[0].kind == Kind::histogram);
  CHECK(outline.values[0].body.empty());
}

TEST_CASE("what is no event is none", "[log][event_outline][table]") {
  struct Row {
    const char* what;
    std::string message;
  };
  const std::vector<Row> rows = {
      {"a tf.Example, framed in the same way", "\x0A\x03\x0A\x01x"},
      {"a length beyond the message", "\x2A\x7F\x0A\x01"},
      {"a value's length beyond the summary", std::string("\x2A\x04\x0A\x09\x0A\x00", 6)},
      {"a group that does not end", "\x10\x01\xA3\x06"},
      {"field number 0", std::string("\x10\x01\x00\x01", 4)},
      {"text", "no protobuf at all"},
      {"a number without an end", std::string("\x10\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01")},
  };
  EventOutline outline;
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK_FALSE(outline.read(row.message));
  }
}

TEST_CASE("a cut message is read as protobuf reads it", "[log][event_outline]") {
  std::mt19937 random(2);
  EventOutline outline;
  for (int round = 0; round < 20; ++round) {
    const std::string message = random_event(random).SerializeAsString();
    for (std::size_t size = 0; size < message.size(); ++size) {
      CAPTURE(round, size);
      const std::string cut = message.substr(0, size);
      proto::Event event;
      const bool read = event.ParseFromString(cut);
      const bool has_field = size == 0 || event.ByteSizeLong() != 0;
      // Where protobuf looks into a body that an outline leaves alone, it may refuse more.
      if (read && has_field) CHECK(outline.read(cut));
    }
  }
}

TEST_CASE("values that hold nothing take no memory", "[log][event_outline]") {
  std::string values;
  for (int i = 0; i < 63; ++i) values += std::string("\x0A\x00", 2);
  EventOutline outline;
  REQUIRE(outline.read("\x2A\x7E" + values));
  CHECK(outline.values.empty());
}

}  // namespace test_event_outline
