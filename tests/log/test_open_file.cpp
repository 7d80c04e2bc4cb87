// SPDX-License-Identifier: Apache-2.0
#include "halfscope/log/open_file.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "halfscope/log/error.hpp"
#include "halfscope/log/mapped_file.hpp"
#include "log_folder.hpp"

namespace test_open_file {

using namespace halfscope::log;

namespace fs = std::filesystem;

std::string text_of(const OpenFile& file, std::uint64_t offset, std::size_t most) {
  std::string text(most, '\0');
  text.resize(file.read(offset, text.data(), most));
  return text;
}

/// So many descriptors and no more, until it goes.
class Descriptors {
 public:
  explicit Descriptors(rlim_t most) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const struct rlimit now = {most, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &now) == 0);
  }
  ~Descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  struct rlimit before_ = {};
};

TEST_CASE("open file: parts of it, and what is none", "[log]") {
  const log_test::Folder folder;
  log_test::put_bytes(folder / "a", "0123456789");
  const OpenFile file(folder / "a");
  CHECK((file.error() == 0 && file.is_regular() && file.size() == 10));
  CHECK(text_of(file, 0, 4) == "0123");
  errno = EINTR;  // of some call before
  CHECK((text_of(file, 8, 4) == "89" && errno == 0));
  CHECK(text_of(file, 11, 4).empty());
  CHECK(OpenFile(folder / "none").error() == ENOENT);
  CHECK(OpenFile(folder.path()).is_folder());
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);  // opening it waits for nobody
  const OpenFile pipe(folder / "pipe");
  CHECK((pipe.error() == 0 && !pipe.is_regular() && !pipe.is_folder()));
}

TEST_CASE("open file: in memory, read over the ends of its pieces", "[log]") {
  const std::string first = "0123", second = "456789";
  const OpenFile file({std::as_bytes(std::span(first)), {}, std::as_bytes(std::span(second))});
  CHECK((file.error() == 0 && file.is_regular() && !file.is_folder() && file.size() == 10));
  CHECK(text_of(file, 0, 10) == "0123456789");
  CHECK(text_of(file, 2, 4) == "2345");
  errno = EINTR;
  CHECK((text_of(file, 8, 4) == "89" && errno == 0));
  CHECK((text_of(file, 10, 1).empty() && text_of(file, 99, 1).empty()));
  const auto inside = file.in_memory(5, 8);
  CHECK((inside.size() == 3 && static_cast<const void*>(inside.data()) == second.data() + 1));
  for (const auto& [begin, end] : {std::pair(3, 5), {0, 5}, {4, 11}, {10, 11}, {5, 4}}) {
    CHECK(file.in_memory(begin, end).empty());
  }
}

TEST_CASE("open files: one that is open is the same one, whatever lies there now", "[log]") {
  const log_test::Folder folder;
  log_test::put_bytes(folder / "a", "first");
  const OpenPath path(folder / "a");
  const auto file = path.open();
  log_test::put_bytes(folder / "b", "other");
  fs::rename(folder / "b", folder / "a");
  CHECK(path.at(folder / "a").open() == file);
  CHECK(text_of(*path.open(), 0, 9) == "first");
  CHECK(text_of(*OpenPath(folder / "a").open(), 0, 9) == "other");

  CHECK(path.at(folder / "later").open()->error() == ENOENT);  // is not kept
  log_test::put_bytes(folder / "later", "is there");
  CHECK(text_of(*path.at(folder / "later").open(), 0, 9) == "is there");
}

TEST_CASE("open files: of many the first ones stay open, and the last", "[log]") {
  const log_test::Folder folder;
  const OpenFiles files;
  std::vector<std::shared_ptr<const OpenFile>> opened;
  const auto open = [&](int number) { return files.open(folder / std::to_string(number)); };
  for (int i = 0; i < 300; ++i) {
    log_test::put_bytes(folder / std::to_string(i), "x");
    opened.push_back(open(i));
  }
  CHECK((open(0) == opened[0] && open(255) == opened[255]));
  CHECK(open(299) == opened[299]);
  CHECK(open(298) != opened[298]);
  CHECK(open(299) != opened[299]);
}

TEST_CASE("open files: one that is shorter than at an earlier look is refused, of many too",
          "[log]") {
  const log_test::Folder folder;
  const OpenFiles files;
  const auto at = [&](int number) { return folder / std::to_string(number); };
  for (int i = 0; i < 300; ++i) {
    log_test::put_bytes(at(i), "xx");
    files.open(at(i));
  }
  for (const int cut : {0, 280, 299}) {
    fs::resize_file(at(cut), 1);
    for (int look = 0; look < 2; ++look) CHECK_THROWS_AS(files.open(at(cut)), BadInput);
    fs::resize_file(at(cut), 3);
    CHECK(files.open(at(cut))->size() == 3);
  }
}

TEST_CASE("open files: where no more may be open, those that are kept are closed", "[log]") {
  const log_test::Folder folder;
  for (int i = 0; i < 100; ++i) log_test::put_bytes(folder / std::to_string(i), "x");
  const OpenFiles files;
  const Descriptors few(40);
  for (int i = 0; i < 100; ++i) {
    const MappedFile mapped({folder / std::to_string(i), files});
    REQUIRE(mapped.size() == 1);
  }
}

TEST_CASE("open files: an empty file in memory is read to its end", "[log]") {
  const OpenFile file(std::vector<std::span<const std::byte>>{});
  char to = 0;
  errno = EBADF;
  CHECK((file.is_in_memory() && file.size() == 0));
  CHECK((file.read(0, &to, 1) == 0 && errno == 0));
}

}  // namespace test_open_file
