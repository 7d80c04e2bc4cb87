// SPDX-License-Identifier: Apache-2.0
// --lines: patterns, the lines that they match, and how they are refused.
#include "analyzers/readers/lines/pattern.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "catch.hpp"

namespace halfscope::analyzers::readers::test_pattern {
namespace {

using lines::Meaning;
using lines::Pattern;

/// The values that a pattern names in a line, as printed; empty if it does not match.
std::vector<std::string> named(const char* pattern, std::string_view line) {
  std::vector<std::string> values;
  for (const lines::NamedValue& value : Pattern(pattern).match(line)) {
    values.emplace_back(value.pair.text);
  }
  return values;
}

TEST_CASE("a pattern names the values of the lines that it matches", "[table]") {
  struct Row {
    const char *pattern, *line;
    std::vector<std::string> values;
  };
  const Row rows[] = {
      {"it={step}|objective {loss}|mult {loss_scale}",
       "it=00010|objective 2.31|mult 65536",
       {"00010", "2.31", "65536"}},
      {"it={step} obj={loss}", "2026-01-01 12:00:01 INFO it=3 obj=nan done", {"3", "nan"}},
      {"{step} {loss}", "v1 x2.5 3 4.5", {"3", "4.5"}},            // no value within a word
      {"it={skipped} ", "it=   12\tdone", {"12"}},                 // blanks before a value
      {"it  {step}\tloss {loss}", "it 1   loss\t 2", {"1", "2"}},  // blanks are alike
      {"it={step}, {loss}", "it=1,2", {}},                         // but not nothing
      {"{step},{loss},{loss_scale}", "1,024,65536", {"1", "024", "65536"}},
      {"it {step}, loss {loss}", "it 94,495,934, loss 1", {"94,495,934", "1"}},
      {"it {step} loss {loss}", "it 94,495,934 loss 1", {"94,495,934", "1"}},
      {"it {skipped} loss", "it 10.5 loss it 11 loss", {"11"}},  // a step is whole
      {"loss {loss}", "loss none, loss inf.", {"inf"}},
      {"scale {loss_scale}", "scale 64K", {}},  // else it would be 64
      {"scale {loss_scale}K", "scale 64K", {"64"}},
      {"bad {overflow}", "bad maybe, bad True", {"True"}},
      {"loss {loss}", "loss True", {}},
      {"loss {loss}", "LOSS 1", {}},
      {"a{_}b {loss}", "b 1 a b 2", {"2"}},
      {"a{}b {loss} {_}", "a b x b 1 ", {"1"}},
      {"{loss} {step}", "x.5 2 .5 3", {".5", "3"}},
      {"{}it {step} {} loss {loss}", "it 1 it 2 loss x loss 3", {"1", "3"}},
      {"{{\"it\": {skipped}}}", "{\"it\": 7}", {"7"}},
      {"it {loss}", "", {}},
      {"it {loss}", "it", {}},
      {"it {loss}", "it ", {}},
  };
  for (const Row& row : rows) {
    INFO(row.pattern << " in " << row.line);
    CHECK(named(row.pattern, row.line) == row.values);
  }
}

TEST_CASE("every name of the help is one of a pattern") {
  std::size_t names = 0;
  for (std::size_t i = 1; i < lines::kMeaningNames.size(); ++i) {
    if (lines::kMeaningNames[i].empty()) continue;  // a part of a loss or norm
    const auto meaning = static_cast<Meaning>(i);
    const std::string name = lines::in_braces(meaning);
    CHECK(lines::pattern_names().find(name) != std::string::npos);
    const std::string other = meaning == Meaning::loss ? " {lr}" : " {loss}";
    const auto values = Pattern("x=" + name + other).match("x=1 2");
    REQUIRE(values.size() == 2);
    CHECK(values[0].meaning == meaning);
    CHECK(values[0].pair.value == 1);
    ++names;
  }
  CHECK(names == 14);
  CHECK(lines::in_braces(Meaning::learning_rate) == "{lr}");
  CHECK(lines::in_braces(Meaning::none) == "{}");
}

TEST_CASE("what is no pattern is refused in a line that names the option", "[table]") {
  struct Row {
    const char *pattern, *why;
  };
  const Row rows[] = {
      {"",
       "--lines '': names no value of a step; put names in braces, such as 'step {step} loss "
       "{loss}'"},
      {"iter", "--lines 'iter': names no value"},
      {"it {}", "names no value"},
      {"it {step} of {epoch} {updates} {global_step}", "names no value of a step"},
      {"it {foo}", "--lines 'it {foo}': {foo} is unknown; use {global_step}, {updates}, {step}, "},
      {"it {Step}", "{Step} is unknown"},
      {"it {ste\x1bp}", "{ste\\x1Bp} is unknown"},
      {"{loss} and {loss}", "{loss} stands twice; write {} in place of one of them"},
      {"it {step", "a brace is opened but not closed; write {{ for one in the line"},
      {"it {step {loss}", "a brace is opened but not closed"},
      {"{'it': {step}}", "a brace is opened but not closed"},
      {"it step}", "a brace is closed but not opened; write }} for one in the line"},
      {"it {step}{loss}", "nothing stands between {loss} and the name before it"},
      {"it {step}{}", "nothing stands between {} and the name before it"},
  };
  for (const Row& row : rows) {
    INFO(row.pattern);
    CHECK_THROWS_WITH(Pattern(row.pattern), Catch::Contains(row.why));
    CHECK_THROWS_AS(Pattern(row.pattern), frames::BadOption);
  }
  try {
    const Pattern refused(std::string(1000, 'x'));
  } catch (const frames::BadOption& error) {
    CHECK(error.message().text().size() < 300);
    CHECK(error.message().in_python().starts_with("lines='xxx"));
  }
}

TEST_CASE("a long line is matched in time that is no power of its length") {
  std::string pattern = "x {loss}", line;
  for (int i = 0; i < 40; ++i) pattern += " {} a";
  for (int i = 0; i < 100'000; ++i) line += " a";
  CHECK(Pattern(pattern + "!").match("x 1" + line).empty());
  CHECK(Pattern(pattern).match("x 1" + line).size() == 1);
}

}  // namespace
}  // namespace halfscope::analyzers::readers::test_pattern
