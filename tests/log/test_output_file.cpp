// SPDX-License-Identifier: Apache-2.0
// A file that appears whole or not at all.
#include "halfscope/log/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "catch.hpp"
#include "temp_folder.hpp"

namespace test_output_file {

namespace fs = std::filesystem;
using halfscope::log::OutputFile;
using halfscope::test::TempFolder;

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

auto files_in(const fs::path& folder) {
  return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
}

TEST_CASE("an output that is not committed leaves what was there", "[log]") {
  const TempFolder folder;
  const fs::path target = folder.write("out.json", "before");
  {
    OutputFile file(target);
    file.write("after");
  }
  CHECK(text_of(target) == "before");
  CHECK(files_in(target.parent_path()) == 1);
  OutputFile file(target);
  file.write("after");
  file.commit();
  CHECK(text_of(target) == "after");
  CHECK(files_in(target.parent_path()) == 1);
}

TEST_CASE("an output takes the permissions of the file that it replaces", "[log]") {
  const TempFolder folder;
  const fs::path target = folder.write("out.json", "before");
  REQUIRE(::chmod(target.c_str(), 0640) == 0);
  OutputFile file(target);
  file.write("after");
  file.commit();
  struct stat now = {};
  REQUIRE(::stat(target.c_str(), &now) == 0);
  CHECK((now.st_mode & 07777U) == 0640);
}

TEST_CASE("a name may be as long as the file system takes", "[log]") {
  const TempFolder folder;
  const fs::path target = folder / std::string(255, 'o');
  OutputFile file(target);
  file.write("text");
  file.commit();
  CHECK(text_of(target) == "text");
}

TEST_CASE("a process that is killed leaves no output behind", "[log]") {
  const TempFolder folder;
  const fs::path target = folder.write("out.json", "before");
  const int unnamed = ::open(target.parent_path().c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
  if (unnamed < 0 || ::access("/proc/self/fd", X_OK) != 0) {
    WARN("skipped: this file system has no unnamed files");
    return;
  }
  ::close(unnamed);
  const pid_t child = ::fork();
  if (child == 0) {
    OutputFile file(target);
    file.write("after");
    ::raise(SIGKILL);
  }
  REQUIRE(child > 0);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
  CHECK(text_of(target) == "before");
  CHECK(files_in(target.parent_path()) == 1);
}

TEST_CASE("a file's ending is one of those that are known", "[log]") {
  const auto ending = [](const char* path) {
    return halfscope::log::require_ending(path, std::array<std::string_view, 2>{".html", ".md"});
  };
  CHECK(ending("page.html") == 0);
  CHECK(ending("a.pdf/PAGE.MD") == 1);
  CHECK(ending("page") == 0);  // without one
  CHECK(ending("-") == 0);
  CHECK_THROWS_WITH(ending("page.pdf"),
                    "found 'page.pdf', expected a name that ends in .html, .md");
  CHECK_THROWS_WITH(ending("page.html.gz"),
                    "found 'page.html.gz', expected a name that ends in .html, .md");
}

}  // namespace test_output_file
