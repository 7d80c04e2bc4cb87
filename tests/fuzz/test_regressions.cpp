// SPDX-License-Identifier: Apache-2.0
// What fuzzing found once, again: regressions/<target>/*, by the same code, in every build. A
// target aborts where something is wrong.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

#include "catch.hpp"
#include "target.hpp"

using namespace halfscope;
namespace fs = std::filesystem;

namespace {

const fs::path kFolder = fs::path(HALFSCOPE_SOURCE_DIR) / "tests" / "fuzz";

std::vector<std::uint8_t> bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// The files of a target, by name; none where it has no folder.
std::vector<fs::path> regressions_of(std::string_view target) {
  std::vector<fs::path> files;
  const fs::path folder = kFolder / "regressions" / target;
  if (!fs::is_directory(folder)) return files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("fuzzing: what was found once is read or refused", "[fuzz]") {
  std::size_t replayed = 0;
  for (const fuzz::Target& target : fuzz::targets()) {
    for (const fs::path& file : regressions_of(target.name)) {
      INFO(file);  // what an abort prints last
      target.run(bytes_of(file));
      ++replayed;
    }
  }
  CHECK(replayed > 0);
}

TEST_CASE("fuzzing: logs cut at every byte are read or refused", "[fuzz]") {
  constexpr std::size_t kMost = 1024;
  std::size_t cut = 0;
  for (const fuzz::Target& target : fuzz::targets()) {
    for (const fs::path& file : regressions_of(target.name)) {
      const std::vector<std::uint8_t> bytes = bytes_of(file);
      if (bytes.size() > kMost) continue;
      INFO(file);
      for (std::size_t size = 0; size < bytes.size(); ++size, ++cut) {
        const std::vector<std::uint8_t> beginning(bytes.data(), bytes.data() + size);
        target.run(beginning);  // its own allocation, so that reading on is seen
      }
    }
  }
  CHECK(cut > 1000);
}

TEST_CASE("fuzzing: every target takes nothing, and short inputs of every first byte", "[fuzz]") {
  for (const fuzz::Target& target : fuzz::targets()) {
    INFO(target.name);
    target.run({});
    for (unsigned first = 0; first < 256; ++first) {
      const std::vector<std::uint8_t> bytes = {static_cast<std::uint8_t>(first), '{', '}', '\n'};
      target.run(bytes);
    }
  }
  SUCCEED();
}

TEST_CASE("fuzzing: every folder of regressions is of a target", "[fuzz]") {
  std::set<std::string> names;
  for (const fuzz::Target& target : fuzz::targets()) names.insert(std::string(target.name));
  for (const auto& entry : fs::directory_iterator(kFolder)) {
    const std::string stem = entry.path().stem().string();
    if (!stem.starts_with("fuzz_") || entry.path().extension() != ".cpp") continue;
    INFO(stem);
    CHECK(names.count(stem.substr(5)) == 1);
  }
  for (const auto& entry : fs::directory_iterator(kFolder / "regressions")) {
    INFO(entry.path());
    CHECK(names.count(entry.path().filename().string()) == 1);
  }
}
