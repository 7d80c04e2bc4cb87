// SPDX-License-Identifier: Apache-2.0
// Lines that differ in their numbers alone: the pairs are those that a line has by itself.
#include "analyzers/readers/lines/forms.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>

#include "catch.hpp"

namespace halfscope::analyzers::readers::test_forms {
namespace {

bool is_figure(char c) { return c >= '0' && c <= '9'; }

/// A line with some of its numbers replaced, and with blanks more or less before others.
std::string varied(const std::string& line, std::mt19937& random) {
  constexpr std::array<const char*, 12> kOther = {"7",   "-2.5",  "1e-05", "nan",  "inf", "+3",
                                                  "0.0", "1,234", "-inf",  "True", ".5",  "x"};
  std::string varied;
  for (std::size_t at = 0; at < line.size();) {
    if (!is_figure(line[at]) || random() % 4 != 0) {
      varied += line[at++];
      continue;
    }
    const std::size_t end = std::min(line.find_first_not_of("0123456789.", at), line.size());
    switch (random() % 8) {
      case 0: varied += ' '; break;
      case 1:
        if (varied.ends_with(' ')) varied.pop_back();
        break;
      case 2: varied += kOther[random() % kOther.size()]; break;
      default: varied += std::to_string(random() % 1000); break;
    }
    at = end;
  }
  return varied;
}

void check_equal(const std::vector<lines::Pair>& found, const std::vector<lines::Pair>& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const lines::Pair &one = found[i], &other = wanted[i];
    // The same places in the line, not equal texts alone.
    const bool same =
        one.text.data() == other.text.data() && one.text == other.text && one.name == other.name &&
        one.unit == other.unit &&
        std::bit_cast<std::uint64_t>(one.value) == std::bit_cast<std::uint64_t>(other.value) &&
        one.is_truth == other.is_truth && one.total == other.total &&
        one.named.meaning == other.named.meaning && one.named.rank == other.named.rank;
    if (!same)
      FAIL("pair " << i << ": '" << one.name << "' '" << one.text << "', wanted '" << other.name
                   << "' '" << other.text << "'");
  }
}

TEST_CASE("lines with other numbers have the pairs that they have by themselves") {
  std::mt19937 random(49);
  std::uint64_t known = 0, all = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(HALFSCOPE_SOURCE_DIR "/tests/data/console")) {
    std::ifstream text(file.path());
    lines::Forms forms;
    for (std::string line; std::getline(text, line);) {
      for (int i = 0; i < 6; ++i) {
        const std::string now = i == 0 ? line : varied(line, random);
        INFO(file.path().filename().string() << ": " << now);
        forms.read(now);
        known += forms.is_new() ? 0 : 1;
        ++all;
        check_equal(forms.pairs(), lines::pairs_in(now));
      }
    }
  }
  CHECK(all > 10'000);
  CHECK(known > all / 10);
}

TEST_CASE("a line is of the form of the last lines with its words") {
  lines::Forms forms;
  forms.read("step 1 loss 2.5");
  CHECK(forms.is_new());
  const std::size_t place = forms.place();
  forms.read("eta 3:05");
  CHECK(forms.is_new());
  forms.read("step   12 loss 0.25");
  CHECK_FALSE(forms.is_new());
  CHECK(forms.place() == place);
  CHECK(forms.pairs().at(1).value == 0.25);
  forms.read("step 13 loss nan");  // a word in place of a number
  CHECK(forms.is_new());
}

}  // namespace
}  // namespace halfscope::analyzers::readers::test_forms
