// SPDX-License-Identifier: Apache-2.0
// Files that are cut short while they are read: a message, never a signal.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "catch.hpp"
#include "halfscope/log/cut_maps.hpp"
#include "halfscope/log/event_file.hpp"
#include "halfscope/log/event_file.pb.h"
#include "halfscope/log/mapped_file.hpp"
#include "halfscope/log/read_file.hpp"
#include "halfscope/log/safetensors.hpp"
#include "temp_folder.hpp"

namespace test_cut_files {

using namespace halfscope;
using test::message_of;
using test::TempFolder;

constexpr std::size_t kBytes = std::size_t{1} << 20;

std::string cut(const std::filesystem::path& file) {
  return file.string() +
         ": was cut short while it was read; read it again when no program rewrites "
         "it";
}

/// How a process ended that ran `body`, and what it wrote to standard error.
struct Ended {
  int status = 0;
  std::string error;
};
Ended in_process(const std::function<void()>& body) {
  int pipe[2];
  REQUIRE(::pipe(pipe) == 0);
  const ::pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::dup2(pipe[1], STDERR_FILENO);
    ::signal(SIGBUS, SIG_DFL);  // without Catch's own handler
    body();
    ::_exit(0);
  }
  ::close(pipe[1]);
  Ended ended;
  char piece[512];
  for (::ssize_t got = 0; (got = ::read(pipe[0], piece, sizeof piece)) > 0;) {
    ended.error.append(piece, static_cast<std::size_t>(got));
  }
  ::close(pipe[0]);
  ::waitpid(child, &ended.status, 0);
  return ended;
}

int touch(std::span<const std::byte> bytes) {
  return std::to_integer<int>(*const_cast<const volatile std::byte*>(&bytes[kBytes - 1]));
}

TEST_CASE("a file that is read and cut short: a message with its name", "[log]") {
  const TempFolder folder;
  const auto path = folder.write("g.npy", std::string(kBytes, 'x'));
  const log::MappedFile file(path);
  CHECK(file.range(0, kBytes).bytes.size() == kBytes);
  std::filesystem::resize_file(path, kBytes / 2);
  CHECK(file.range(0, kBytes / 2).bytes.size() == kBytes / 2);
  CHECK(message_of([&] { file.range(0, kBytes); }) == cut(path));
  CHECK(message_of([&] { file.check_size(); }) == cut(path));
}

TEST_CASE("bytes that were read stay when the file is cut", "[log]") {
  const TempFolder folder;
  const std::string header = R"({"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})";
  const auto path = folder.write(
      "g.safetensors", test::little_endian(header.size(), 8) + header + std::string(16, '\x01'));
  const log::Safetensors file(path);
  const auto tensor = file.tensor("w");
  std::filesystem::resize_file(path, 0);
  REQUIRE(tensor != nullptr);
  CHECK(tensor->view.data[15] == std::byte{1});
  CHECK(message_of([&] { file.tensor("w"); }) == cut(path));
}

TEST_CASE("a mapped file that is cut short: one line, and exit code 1", "[log]") {
  const TempFolder folder;
  const auto path = folder.write("g.npy", std::string(kBytes, 'x'));
  const Ended ended = in_process([&path] {
    log::end_where_maps_are_cut();
    const log::MappedFile other(path);
    const log::MappedFile file(path);
    std::filesystem::resize_file(path, 1);
    ::_exit(touch(file.range(0, kBytes).bytes) == 0 ? 2 : 3);
  });
  CHECK(WIFEXITED(ended.status));
  CHECK(WEXITSTATUS(ended.status) == 1);
  CHECK(ended.error == "halfscope: " + cut(path) + "\n");
}

TEST_CASE("a fault elsewhere than in a log takes its usual course", "[log]") {
  const TempFolder folder;
  const auto path = folder.write("other", std::string(kBytes, 'x'));
  const Ended ended = in_process([&path] {
    log::end_where_maps_are_cut();
    { const log::MappedFile file(path); }  // no longer a log's
    const log::OpenFile file(path);
    const void* const memory = ::mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE, file.number(), 0);
    std::filesystem::resize_file(path, 1);
    touch({static_cast<const std::byte*>(memory), kBytes});
  });
  CHECK(WIFSIGNALED(ended.status));
  CHECK(WTERMSIG(ended.status) == SIGBUS);
  CHECK(ended.error.empty());
}

TEST_CASE("a file that shrank since the last look at it is refused", "[log]") {
  const TempFolder folder;
  const auto path = folder.write("train.log", "step 1\nstep 2\n");
  const log::OpenFiles files;
  CHECK(log::read_text({path, files}) == "step 1\nstep 2\n");
  folder.write("train.log", "step 1\nstep 2\nstep 3\n");  // goes on
  CHECK(log::read_text({path, files}, 6) == "step 1");
  folder.write("train.log", "step 1\n");
  CHECK(message_of([&] { log::read_text({path, files}); }) == cut(path));
  CHECK(log::read_text(path) == "step 1\n");
}

TEST_CASE("an event file that is cut short while it is read is refused", "[log]") {
  const TempFolder folder;
  const auto path = folder / "events.out.tfevents.1";
  {
    log::EventWriter writer(path);
    log::proto::Event event;
    event.set_file_version(std::string(kBytes, 'x'));
    for (int i = 0; i < 8; ++i) writer.write(event);
  }
  log::EventReader reader(path);
  CHECK(reader.next_message());
  std::filesystem::resize_file(path, 3 * kBytes);
  CHECK(message_of([&] {
          while (reader.next_message()) {
          }
        }) == cut(path));
}

}  // namespace test_cut_files
