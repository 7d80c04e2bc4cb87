// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/console/console_reading.hpp"

#include <fmt/format.h>

#include <memory>
#include <sstream>
#include <string>

#include "catch.hpp"

namespace test_console_rows {

using namespace halfscope::analyzers::readers::console;

/// How a text's rows are wrapped.
Wrapping wrapping_in_text(const std::string& text) {
  return wrapping_of([&text]() -> NextRow {
    return [in = std::make_shared<std::istringstream>(text),
            row = std::string()]() mutable -> std::optional<std::string_view> {
      return std::getline(*in, row) ? std::optional<std::string_view>(row) : std::nullopt;
    };
  });
}

std::string wrapped(const std::string& line, std::size_t columns) {
  std::string rows;
  for (std::size_t at = 0; at < line.size(); at += columns) rows += line.substr(at, columns) + "\n";
  return rows;
}

std::string overflow(int scale) {
  return fmt::format(
      "[deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {}, reducing to {}", scale,
      scale / 2);
}

TEST_CASE("rows: a message of two rows shows that lines are wrapped") {
  const std::string text = "begin\n" + wrapped(overflow(65536), 60) + wrapped(overflow(32768), 60);
  const Wrapping found = wrapping_in_text(text);
  CHECK(found.columns == 60);
  CHECK(found.goes_on(overflow(65536).substr(0, 60), "65536, reducing to 32768"));
  CHECK_FALSE(found.goes_on(overflow(65536).substr(0, 60), overflow(32768).substr(0, 60)));
  CHECK_FALSE(found.goes_on("short", "65536, reducing to 32768"));
}

TEST_CASE("rows: a scale that halves only with the next row") {
  const std::string line = overflow(65536);
  CHECK(wrapping_in_text("begin\n" + wrapped(line, line.size() - 1)).columns > 0);
}

TEST_CASE("rows: lines of equal length are no rows") {
  std::string text;
  for (int i = 10; i < 90; ++i) {
    text += fmt::format("iteration {:8d}/ 20000 | loss scale: 1024.0 | grad norm: 0.5 |\n", i);
  }
  CHECK(wrapping_in_text(text).columns == 0);
  CHECK(wrapping_in_text("begin\n" + text + "end\n").columns == 0);
}

TEST_CASE("rows: a row of nothing but the rest of a number") {
  const std::string row =
      "Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 3276";
  CHECK(wrapping_in_text("begin\n" + row + "\n8.0\n").columns == row.size());
  CHECK(wrapping_in_text("begin\n" + row + "\n0 loss 2.85\n").columns == 0);
}

TEST_CASE("rows: the end of Megatron-LM's line begins much like the next line") {
  const std::string line =
      " iteration     1690/    2000 | loss scale: 65536.0 | grad norm: 0.5 | number of skipped"
      " iterations:   1 | number of nan iterations:   0 |";
  const std::size_t columns = line.find(" iterations:");
  std::string text;
  for (int i = 0; i < 3; ++i) text += wrapped(line, columns);
  const Wrapping found = wrapping_in_text(text);
  CHECK(found.columns == columns);
  CHECK(found.goes_on(line.substr(0, columns), line.substr(columns)));
  CHECK_FALSE(found.goes_on(line.substr(0, columns), line));
}

TEST_CASE("rows: text of no screen") {
  CHECK(wrapping_in_text("").columns == 0);
  CHECK(wrapping_in_text(std::string(5000, 'x')).columns == 0);
  CHECK(wrapping_in_text("\x1b[31m" + wrapped(overflow(65536), 60)).columns == 0);
  CHECK(wrapping_in_text(wrapped(overflow(65536), 20)).columns == 0);  // no terminal is so narrow
}

}  // namespace test_console_rows
