// SPDX-License-Identifier: Apache-2.0
// What single lines say: colours, fields, progress bars, torn iterations.
#include "analyzers/readers/console/console_lines.hpp"

#include <cmath>

#include "analyzers/readers/console/console_words.hpp"
#include "catch.hpp"

namespace halfscope::analyzers::readers::test_console_lines {
namespace {

using namespace std::literals;

TEST_CASE("colours are taken out of a line, wherever they are") {
  std::string buffer;
  CHECK(console::without_colours("\x1b[1;31mskip\x1b[0mped=\x1b[32m2", buffer) == "skipped=2");
  CHECK(console::without_colours("\\u001b[36mstep=1\\u001b[0m, x", buffer) == "step=1, x");
  CHECK(console::without_colours("[INFO] path C:\\new [1]", buffer) == "[INFO] path C:\\new [1]");
  CHECK(console::without_colours("cut \x1b[", buffer) == "cut \x1b[");
}

TEST_CASE("a progress bar's counts, and of what it is") {
  const auto bar =
      console::bar_of("Epoch 1:  41%|####1     | 98/240 [00:40<02:40,  2.50it/s, loss=nan]"sv);
  REQUIRE(bar);
  CHECK(bar->done == 98);
  CHECK(bar->total == 240);
  CHECK(bar->of == "Epoch 1:  41");
  for (const std::string_view line : {"41%|###| 98/? [", "41%| 98/240", "| 98/240 [00:40",
                                      "41%|##| 241/240 [", "41%|##| -1/240 [", "41%|##| 1k/2k ["}) {
    INFO(line);
    CHECK_FALSE(console::bar_of(line));
  }
}

TEST_CASE("an iteration's number that is torn is none") {
  CHECK(console::iteration_of("Grad overflow on iteration 4"sv)->iteration == 4);
  CHECK(console::iteration_of("Grad overflow on iteration:  4 "sv)->iteration == 4);
  for (const std::string_view line :
       {"Grad overflow on iteration", "Grad overflow on iteration 4Using dynamic",
        "Grad overflow on iterationGrad overflow on iteration 44",
        "Grad overflow on iteration 146681466814669"}) {
    INFO(line);
    REQUIRE(console::iteration_of(line));
    CHECK_FALSE(console::iteration_of(line)->iteration);
  }
  CHECK_FALSE(console::iteration_of("No Grad overflow for 4 iterations"sv));
}

}  // namespace
}  // namespace halfscope::analyzers::readers::test_console_lines
