// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/input/memory_input.hpp"

#include <span>
#include <string>

#include "analyzers/readers/input/open_input.hpp"
#include "analyzers/readers/input/standard_input.hpp"
#include "catch.hpp"

namespace test_memory_input {

using namespace halfscope::analyzers::readers;

TEST_CASE("memory input: a path leads to it while it lives", "[readers]") {
  const std::string text = "step 1 loss 2";
  const std::filesystem::path path = "arrays of a test";
  {
    const input::MemoryInput memory(path, {std::as_bytes(std::span(text))});
    CHECK((input::exists(path) && input::is_file(path)));
    CHECK_FALSE(input::exists("arrays of another"));
    const auto file = input::open_files().open(path);
    std::string read(text.size(), ' ');
    CHECK((file->read(0, read.data(), read.size()) == text.size() && read == text));
  }
  CHECK_FALSE(input::exists(path));
  CHECK(input::open_files().open(path)->error() != 0);
}

}  // namespace test_memory_input
