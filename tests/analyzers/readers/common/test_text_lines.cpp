// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/text_lines.hpp"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "temp_folder.hpp"

namespace test_text_lines {

using namespace halfscope;
using namespace halfscope::analyzers::readers;
using namespace halfscope::test;

TEST_CASE("text lines: ends of lines, the last one, numbers, progress") {
  const TempFolder folder;
  std::uint64_t told = 0;
  common::TextLines lines(
      folder.write("log", "a\r\n\nb"), [&](auto done, auto) { told = done; }, 100, 200);
  CHECK(lines.next() == "a");
  CHECK(lines.next() == "");
  CHECK(lines.next() == "b");
  CHECK(lines.number() == 3);
  CHECK(!lines.next());
  CHECK(told > 100);
  CHECK(!common::TextLines(folder.write("empty", "")).next());
}

TEST_CASE("text lines: of any length, however they lie in the blocks that are read") {
  const TempFolder folder;
  std::string text;
  std::vector<std::string> wanted;
  for (std::size_t i = 0; i < 9; ++i) {
    for (const std::size_t size : {std::size_t{1} << (2 * i + 2), std::size_t{3} << (2 * i)}) {
      wanted.emplace_back(size, static_cast<char>('a' + i));
      text += wanted.back() + (i % 2 == 0 ? "\n" : "\r\n");
    }
  }
  common::TextLines lines(folder.write("log", text + "cut"));
  std::vector<std::pair<std::string_view, common::TextLines::Block>> found;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto line = lines.next();
    REQUIRE(line);
    CHECK_FALSE(lines.cut());
    found.emplace_back(*line, lines.block());
    if (i + 1 < wanted.size()) CHECK(lines.peek()->size() == wanted[i + 1].size());
    CHECK(*line == wanted[i]);  // after a look at the next one
  }
  CHECK(lines.next() == "cut");
  CHECK(lines.cut());
  CHECK_FALSE(lines.next());
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK(found[i].first == wanted[i]);
}

TEST_CASE("text lines: zeros before a line take no memory") {
  const TempFolder folder;
  const auto path = folder.write("log", "");
  std::filesystem::resize_file(path, std::uint64_t{1} << 28);
  std::ofstream(path, std::ios::app) << "step 1\nstep 2\n";
  common::TextLines lines(path);
  const auto first = lines.next();
  REQUIRE(first);
  CHECK(first->size() < std::size_t{1} << 22);
  CHECK(first->starts_with('\0'));
  CHECK(first->ends_with("step 1"));
  CHECK(lines.next() == "step 2");
}

TEST_CASE("text lines: of a line that is too long the rest is skipped") {
  const TempFolder folder;
  constexpr std::size_t kMost = std::size_t{1} << 24;
  for (const std::size_t size : {kMost + 1, 2 * kMost + 5, 5 * kMost}) {
    CAPTURE(size);
    const log::OpenPath path(folder.write(
        "log", "a\n" + std::string(size, 'x') + "\nstep 2\n" + std::string(size, 'y')));
    common::TextLines lines(path, {}, 0, 1);
    CHECK(lines.next() == "a");
    CHECK(lines.next() == std::string(kMost, 'x'));
    CHECK(lines.next() == "step 2");
    CHECK(lines.number() == 3);
    CHECK(lines.next() == std::string(kMost, 'y'));
    CHECK_FALSE(lines.next());
    const std::string notes = path.path.string() +
                              ": line 2 has 16777216 bytes or more, expected "
                              "fewer; the rest of it is skipped";
    REQUIRE(path.files.notes(path.path).size() == 2);
    CHECK(path.files.notes(path.path)[0] == notes);
    const log::OpenPath other = path.at(folder.write("other", std::string(size, 'x')));
    common::TextLines look(other);
    CHECK(look.next()->size() == kMost);
    CHECK(path.files.notes(other.path).empty());
  }
}

TEST_CASE("text lines: a file that is cut short while it is read is refused") {
  const TempFolder folder;
  std::string text;
  for (int i = 0; i < 1'000'000; ++i) text += "step " + std::to_string(i) + "\n";
  const auto path = folder.write("log", text);
  common::TextLines lines(path);
  CHECK(lines.next() == "step 0");
  std::filesystem::resize_file(path, 0);
  const std::string message = message_of([&] {
    while (lines.next()) {
    }
  });
  CHECK(message.starts_with(path.string() + ": was cut short while it was read"));
}

TEST_CASE("text lines: bad ones are one note with the first") {
  analyzers::frames::Notes notes;
  common::BadLines bad;
  bad.tell("log", notes);
  CHECK(notes.empty());
  bad.add(7, "why");
  bad.add(9, "other");
  bad.tell("log", notes);
  REQUIRE(notes.size() == 1);
  CHECK(notes[0] == "log: 2 lines are skipped; the first is line 7: why");
}

TEST_CASE("text lines: numbers and their last digit") {
  CHECK(common::number_in("1.5e-3") == 1.5e-3);
  CHECK(common::number_in("+2") == 2.0);
  CHECK(std::isnan(common::number_in("nan").value()));
  CHECK(common::number_in("-inf") == -std::numeric_limits<double>::infinity());
  for (const char* text : {"", "1 ", "x", "1e999", "1.5.2"}) {
    INFO(text);
    CHECK(!common::number_in(text));
  }
  CHECK(common::last_digit_of("0.1234") == -4);
  CHECK(common::last_digit_of("1.5e-06") == -7);
  CHECK(common::last_digit_of("12") == 0);
  CHECK(common::last_digit_of("1e-06") == -6);
  CHECK(common::last_digit_of("65504.0") == -1);
  CHECK(!common::last_digit_of("inf"));
  CHECK(!common::last_digit_of("1e-999999999999"));
}

TEST_CASE("text lines: a printed number's bounds hold every number that prints so") {
  const auto x = GENERATE(0.0, 5e-5, 1.0 / 3, 0.99995, 65504.00004999, 1.23e7 + 1e-5, 3e-9, -0.7);
  char text[40];
  std::snprintf(text, sizeof text, "%.4f", x);
  const common::Bounds b =
      common::printed_bounds(common::number_in(text).value(), common::last_digit_of(text).value());
  INFO(text);
  CHECK(b.low <= x);
  CHECK(x <= b.high);
  CHECK(b.high - b.low <= 1e-4 * (1 + 0x1p-40) + std::abs(x) * 0x1p-47);
  const common::Bounds m = common::magnitude_bounds(b);
  CHECK(m.low >= 0);
  CHECK(m.low <= std::abs(x));
  CHECK(std::abs(x) <= m.high);
}

}  // namespace test_text_lines
