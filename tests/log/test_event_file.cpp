// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/event_file.hpp"

#include <sys/resource.h>

#include <csignal>
#include <string>

#include "halfscope/log/event_file.pb.h"
#include "log_folder.hpp"

namespace test_event_file {

using namespace halfscope::log;
using namespace log_test;
using halfscope::test::little_endian;

proto::Event event_at(std::int64_t step) {
  proto::Event event;
  event.set_step(step);
  event.mutable_summary()->add_value()->set_tag("loss");
  event.mutable_summary()->mutable_value(0)->set_simple_value(static_cast<float>(step));
  return event;
}

/// Steps of the summaries that can be read, and the notes.
struct Read {
  std::vector<std::int64_t> steps;
  std::vector<std::uint64_t> offsets;
  std::vector<std::string> notes;
};

Read read_all(const fs::path& file) {
  EventReader reader(file);
  Read read;
  while (const auto event = reader.next()) {
    if (!event->has_summary()) continue;
    read.steps.push_back(event->step());
    read.offsets.push_back(reader.offset());
  }
  read.notes = reader.notes();
  return read;
}

void write_steps(const fs::path& file, std::int64_t count) {
  EventWriter writer(file);
  for (std::int64_t step = 0; step < count; ++step) writer.write(event_at(step));
}

TEST_CASE("crc32c has its published values", "[log][event_file][table]") {
  struct Row {
    const char* what;
    std::string bytes;
    std::uint32_t crc;
  };
  std::string ascending(32, '\0');
  for (std::size_t i = 0; i < ascending.size(); ++i) ascending[i] = static_cast<char>(i);
  const std::vector<Row> rows = {
      {"the check value of the catalogue", "123456789", 0xE3069283},
      {"nothing", "", 0},
      {"RFC 3720 B.4: 32 bytes of zeros", std::string(32, '\0'), 0x8A9136AA},
      {"RFC 3720 B.4: 32 bytes of ones", std::string(32, '\xFF'), 0x62A8AB43},
      {"RFC 3720 B.4: 0 to 31", ascending, 0x46DD794E},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK(crc32c(row.bytes) == row.crc);
  }
  // Rotated right by 15 and 0xA282EAD8 added, worked by hand for 0xE3069283:
  // rotr15 = 0x2507C60D; the sum is 0xC78AB0E5.
  CHECK(masked_crc32c("123456789") == 0xC78AB0E5u);
}

TEST_CASE("an event file begins with its version and holds what was written", "[log][event_file]") {
  const Folder folder;
  const fs::path file = folder / "events.out.tfevents.1";
  write_steps(file, 3);
  EventReader reader(file);
  const auto version = reader.next();
  REQUIRE(version);
  CHECK(version->file_version() == "brain.Event:2");
  CHECK(reader.offset() == 0);
  const Read read = read_all(file);
  CHECK(read.steps == std::vector<std::int64_t>{0, 1, 2});
  CHECK(read.notes.empty());

  EventReader again(file);
  again.seek(read.offsets[1]);
  CHECK(again.next()->step() == 1);
  CHECK(again.offset() == read.offsets[1]);
}

TEST_CASE("a record is on disk when write returns", "[log][event_file]") {
  const Folder folder;
  const fs::path file = folder / "events.out.tfevents.1";
  EventWriter writer(file);
  for (std::int64_t step = 0; step < 3; ++step) {
    writer.write(event_at(step));
    CHECK(read_all(file).steps.size() == static_cast<std::size_t>(step + 1));
  }
}

TEST_CASE("an event file is never written over", "[log][event_file]") {
  const Folder folder;
  const fs::path file = folder / "events.out.tfevents.1";
  write_steps(file, 1);
  const std::string before = bytes_of(file);
  const std::string message = bad_input([&] { EventWriter writer(file); });
  CHECK(mentions(message, "events.out.tfevents.1"));
  CHECK(bytes_of(file) == before);
  CHECK(mentions(bad_input([&] { EventWriter writer(folder / "no/such/folder"); }), "no/such"));
  CHECK(mentions(bad_input([&] { EventReader reader(folder / "missing"); }), "missing"));
}

/// Files of this process end at `bytes` while it lives, as on a disk that is full.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit limit = {bytes, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_CASE("a record that does not fit on the disk is taken back", "[log][event_file]") {
  const Folder folder;
  const fs::path file = folder / "events.out.tfevents.1";
  EventWriter writer(file);
  const std::uintmax_t start = fs::file_size(file);
  {
    const FileSizeLimit full(start + 20);  // a part of the record fits
    CHECK(mentions(bad_input([&] { writer.write(event_at(0)); }), "events.out.tfevents.1"));
    CHECK(fs::file_size(file) == start);
  }
  writer.write(event_at(1));
  const Read read = read_all(file);
  CHECK(read.steps == std::vector<std::int64_t>{1});
  CHECK(read.notes.empty());
}

TEST_CASE("a file cut at any byte gives all whole records before", "[log][event_file]") {
  const Folder folder;
  const fs::path whole = folder / "whole", cut = folder / "cut";
  write_steps(whole, 4);
  const std::string bytes = bytes_of(whole);
  const Read read = read_all(whole);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    put_bytes(cut, std::string_view(bytes).substr(0, size));
    std::vector<std::int64_t> expected;
    bool at_an_end = size == 0 || size == bytes.size();
    for (std::size_t i = 0; i < read.steps.size(); ++i) {
      const std::uint64_t end = i + 1 < read.offsets.size() ? read.offsets[i + 1] : bytes.size();
      if (end <= size) expected.push_back(read.steps[i]);
      at_an_end = at_an_end || read.offsets[i] == size;
    }
    const Read part = read_all(cut);
    CAPTURE(size);
    REQUIRE(part.steps == expected);
    REQUIRE(part.notes.size() == (at_an_end ? 0u : 1u));
    if (!at_an_end) REQUIRE(mentions(part.notes[0], "cut short"));
  }
}

TEST_CASE("one wrong byte loses one record, wherever it is", "[log][event_file]") {
  const Folder folder;
  const fs::path whole = folder / "whole", damaged = folder / "damaged";
  write_steps(whole, 4);
  const std::string bytes = bytes_of(whole);
  const Read read = read_all(whole);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string wrong = bytes;
    wrong[at] = static_cast<char>(wrong[at] ^ 0x10);
    put_bytes(damaged, wrong);
    std::vector<std::int64_t> expected;
    for (std::size_t i = 0; i < read.steps.size(); ++i) {
      const std::uint64_t end = i + 1 < read.offsets.size() ? read.offsets[i + 1] : bytes.size();
      if (at < read.offsets[i] || at >= end) expected.push_back(read.steps[i]);
    }
    const Read part = read_all(damaged);
    CAPTURE(at);
    REQUIRE(part.steps == expected);
    REQUIRE(part.notes.size() == 1);
    REQUIRE(mentions(part.notes[0], "checksum"));
  }
}

TEST_CASE("zeros that a crash left in the file are stepped over", "[log][event_file]") {
  const Folder folder;
  const fs::path file = folder / "events";
  write_steps(file, 2);
  const std::string bytes = bytes_of(file);
  const std::size_t start = read_all(file).offsets[0];
  put_bytes(file, bytes + std::string(200'000, '\0') + bytes.substr(start));
  const Read read = read_all(file);
  CHECK(read.steps == std::vector<std::int64_t>{0, 1, 0, 1});
  REQUIRE(read.notes.size() == 1);
  CHECK(mentions(read.notes[0], "bytes " + std::to_string(bytes.size()) + " to " +
                                    std::to_string(bytes.size() + 200'000)));
  put_bytes(file, bytes + std::string(1000, '\0'));
  CHECK(read_all(file).steps == std::vector<std::int64_t>{0, 1});
}

TEST_CASE("a length larger than the file allocates nothing", "[log][event_file]") {
  const Folder folder;
  const fs::path file = folder / "events";
  write_steps(file, 1);
  const std::string length = little_endian(std::uint64_t{0x7F} << 56, 8);
  const std::string header = length + little_endian(masked_crc32c(length), 4);
  put_bytes(file, bytes_of(file) + header + "some bytes that are no such record");
  const Read read = read_all(file);
  CHECK(read.steps == std::vector<std::int64_t>{0});
  REQUIRE(read.notes.size() == 1);
  CHECK(mentions(read.notes[0], "cut short"));
}

TEST_CASE("a record that is no event is skipped", "[log][event_file]") {
  const Folder folder;
  const fs::path file = folder / "events";
  write_steps(file, 1);
  const auto checksum = [](const std::string& of) { return little_endian(masked_crc32c(of), 4); };
  const std::string data = "\xFF\xFF\xFF no protobuf";
  const std::string length = little_endian(data.size(), 8);
  const std::string bytes = bytes_of(file);
  const std::string step = bytes.substr(read_all(file).offsets[0]);
  put_bytes(file, bytes + length + checksum(length) + data + checksum(data) + step);
  const Read read = read_all(file);
  CHECK(read.steps == std::vector<std::int64_t>{0, 0});
  REQUIRE(read.notes.size() == 1);
  CHECK(mentions(read.notes[0], "not a TensorBoard event"));
}

}  // namespace test_event_file
