// SPDX-License-Identifier: Apache-2.0
// Every vector of Berkeley TestFloat that is found: results and flags, in the modes that a file's
// name tells: FUNCTION.ROUNDING[.before|after][.exact|notexact].txt.gz. The vectors are no part of
// the repository; HALFSCOPE_TESTFLOAT_VECTORS names the folder where they lie elsewhere.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "catch.hpp"
#include "halfscope/number/operation_table.hpp"

namespace test_testfloat {

using namespace halfscope;

namespace fs = std::filesystem;

fs::path vector_folder() {
  const char* const told = std::getenv("HALFSCOPE_TESTFLOAT_VECTORS");
  if (told != nullptr) return told;
  return fs::path(HALFSCOPE_SOURCE_DIR) / ".." / "shared" / "vectors" / "testfloat";
}

std::vector<fs::path> vector_files() {
  std::vector<fs::path> files;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(vector_folder(), none)) {
    if (entry.path().string().ends_with(".txt.gz")) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// What a file's name says.
struct Case {
  const Operation* operation;
  Modes modes;
  bool exact = false;
};

/// False when the word is no mode.
bool apply_word(Case& c, const std::string& word) {
  Modes& m = c.modes;
  if (word == "near_even") return m.rounding = Rounding::ties_to_even, true;
  if (word == "near_maxMag") return m.rounding = Rounding::ties_to_away, true;
  if (word == "minMag") return m.rounding = Rounding::toward_zero, true;
  if (word == "min") return m.rounding = Rounding::downward, true;
  if (word == "max") return m.rounding = Rounding::upward, true;
  if (word == "odd") return m.rounding = Rounding::to_odd, true;
  if (word == "before") return m.tininess = Tininess::before_rounding, true;
  if (word == "after") return m.tininess = Tininess::after_rounding, true;
  if (word == "canonical") return m.nan = NanPolicy::canonical, true;
  if (word == "exact") return c.exact = true, true;
  return word == "notexact";
}

/// Nothing when the operation or a mode is not known.
std::optional<Case> parse_name(const std::string& name) {
  std::vector<std::string> words = split(name, '.');
  words.resize(words.size() - 2);  // .txt.gz
  Case c{find_operation(words.front()), {}};
  if (c.operation == nullptr) return std::nullopt;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (!apply_word(c, words[i])) return std::nullopt;
  }
  return c;
}

std::string read_gzip(const fs::path& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  REQUIRE(file != nullptr);
  std::string text, block(std::size_t{1} << 18, '\0');
  int got = 0;
  while ((got = gzread(file.get(), block.data(), static_cast<unsigned>(block.size()))) > 0) {
    text.append(block, 0, static_cast<std::size_t>(got));
  }
  int error = Z_OK;
  gzerror(file.get(), &error);
  REQUIRE(got == 0);
  REQUIRE((error == Z_OK || error == Z_STREAM_END));  // not cut short
  return text;
}

struct Judged {
  std::size_t lines = 0;
  std::string first_wrong;  ///< empty when all are right
};

/// The numbers of a line; fewer when something is no hexadecimal number.
std::vector<std::uint64_t> numbers(std::string_view line) {
  std::vector<std::uint64_t> found;
  while (!line.empty()) {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), value, 16);
    if (error != std::errc()) break;
    found.push_back(value);
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    if (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  }
  return found;
}

/// The NaN that SoftFloat's 8086-SSE build makes of one, its payload one place off; empty for all
/// else. docs/emulate.md.
std::optional<std::uint64_t> misplaced_nan(const Case& c, std::uint64_t operand) {
  const std::string_view name = c.operation->name;
  const bool widens = name == "bf16_to_f32";
  if (c.modes.nan != NanPolicy::x86 || (!widens && name != "f32_to_bf16")) return std::nullopt;
  const std::uint64_t infinity = widens ? kBfloat16.infinity() : kBinary32.infinity();
  const std::uint64_t sign = operand >> (widens ? 15 : 31),
                      magnitude = operand & ~(sign << (widens ? 15 : 31));
  if (magnitude <= infinity) return std::nullopt;
  if (widens) return sign << 31 | 0x7FC00000 | (operand & 0xFF) << 15;
  return sign << 15 | 0x7FC0 | (operand >> 15 & 0xFF);
}

/// Empty when the library does what the line says.
std::string wrong(const Case& c, std::string_view line) {
  const std::vector<std::uint64_t> words = numbers(line);
  const std::size_t count = c.operation->takes.size();
  if (words.size() != count + 2) return fmt::format("'{}' is no line of it", line);
  Operands operands{};
  std::copy_n(words.begin(), count, operands.begin());
  const Rounded got = (*c.operation)(operands, c.modes, c.exact);
  const bool same_bits = got.bits == words[count] || misplaced_nan(c, operands[0]) == words[count];
  if (same_bits && flag_bits(got.flags) == words[count + 1]) return {};
  return fmt::format("'{}' but got {:X} {:02X}", line, got.bits, flag_bits(got.flags));
}

Judged judge(const Case& c, std::string_view text) {
  Judged judged;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string message = wrong(c, text.substr(0, end));
    if (!message.empty() && judged.first_wrong.empty()) judged.first_wrong = message;
    ++judged.lines;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return judged;
}

TEST_CASE("SoftFloat's bfloat16 NaNs count as right, others with another payload do not",
          "[table]") {
  const Case widen{find_operation("bf16_to_f32"), {}}, narrow{find_operation("f32_to_bf16"), {}};
  for (const char* line : {"7FC1 7FC10000 00", "7FC1 7FE08000 00", "FF82 FFC10000 10"}) {
    CHECK(wrong(widen, line) == "");
  }
  for (const char* line : {"7FC12345 7FC1 00", "7FC12345 7FC2 00", "FF820000 FFC4 10"}) {
    CHECK(wrong(narrow, line) == "");
  }
  CHECK(wrong(widen, "7FC1 7FE00000 00") != "");
  CHECK(wrong(widen, "7FC1 7FE08000 10") != "");
  CHECK(wrong(widen, "3F80 3FC00000 00") != "");
  CHECK(wrong(narrow, "7FC12345 7FC3 00") != "");
  const Case canonical{widen.operation, {.nan = NanPolicy::canonical}};
  CHECK(wrong(canonical, "7FC1 7FE08000 00") != "");
}

TEST_CASE("every TestFloat vector that is found is met, flags included", "[testfloat]") {
  const std::vector<fs::path> files = vector_files();
  if (files.empty()) {
    INFO("HALFSCOPE_TESTFLOAT_VECTORS names a folder without vectors: " << vector_folder());
    REQUIRE(std::getenv("HALFSCOPE_TESTFLOAT_VECTORS") == nullptr);
    std::cout << "skipped: TestFloat vectors not found in " << vector_folder().string()
              << "; set HALFSCOPE_TESTFLOAT_VECTORS to their folder\n";
    return;  // CTest reports the test as skipped
  }
  std::size_t used = 0, lines = 0;
  for (const fs::path& path : files) {
    const std::string name = path.filename().string();
    const std::optional<Case> c = parse_name(name);
    INFO(name);
    CHECK(c.has_value());  // a function or mode that the library does not know
    if (!c) continue;
    const Judged judged = judge(*c, read_gzip(path));
    CHECK(judged.first_wrong == "");
    CHECK(judged.lines > 0);
    ++used;
    lines += judged.lines;
  }
  std::cout << fmt::format("TestFloat vectors: found {} files, used {}, {} lines\n", files.size(),
                           used, lines);
  CHECK(used == files.size());
}

}  // namespace test_testfloat
