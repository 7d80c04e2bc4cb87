// SPDX-License-Identifier: Apache-2.0
// Steps of block formats against exact integers, and by tables.
#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/random.hpp"
#include "halfscope/tensor_core/scaled_mma.hpp"
#include "tensor_core/scaled_judge.hpp"

namespace test_scaled_mma {

using namespace halfscope;
using namespace halfscope::tensor_core;

constexpr ScaledUnit kE8m0By16 = {
    .unit = kBlackwellMxf4nvf4.unit, .group = 16, .block = 16, .scale = Scale::e8m0};
constexpr Kind kKinds[] = {{"mxf8f6f4", kBlackwellMxf8f6f4, 32, 1, 32, 25, -133, false},
                           {"mxf4", kBlackwellMxf4, 64, 16, 32, 35, -139, false},
                           {"mxf4nvf4", kBlackwellMxf4nvf4, 64, 16, 16, 35, -139, true},
                           {"mxf4nvf4, E8M0", kE8m0By16, 64, 16, 16, 35, -139, false}};

std::uint32_t ours(const Kind& kind, const Operand& a, const Operand& b, std::uint32_t c) {
  return scaled_chain(kind.unit, {find_format(a.format)->format, a.codes.data(), a.scales.data()},
                      {find_format(b.format)->format, b.codes.data(), b.scales.data()},
                      static_cast<int>(a.codes.size()), c);
}

class Words {
 public:
  explicit Words(std::uint64_t seed) : seed_(seed) {}
  std::uint32_t below(std::uint32_t bound) { return random_word(seed_, index_++) % bound; }

 private:
  std::uint64_t seed_, index_ = 0;
};

/// Scales about one power of two, or of any size.
ScaleCodes scales(Words& random, bool e4m3, std::size_t count) {
  const std::uint32_t centre = random.below(256), spread = 1 + random.below(3) * 20;
  ScaleCodes out;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t any = random.below(e4m3 ? 0x100 : 0xFF);
    const std::uint32_t near = std::min(centre + random.below(spread), 0xFEU);
    out.push_back(static_cast<std::uint8_t>(random.below(4) == 0 ? any : near));
    if (e4m3 && out.back() % 128 == 127) out.back() ^= 1;  // no NaN
  }
  return out;
}

Operand operand(Words& random, const Kind& kind, std::string format, std::size_t count) {
  const Layout& f = oracle::layout(format);
  const std::uint32_t zeros = random.below(4), low = random.below(2);
  Codes codes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto last = static_cast<std::uint32_t>(low == 0 ? f.last() : f.last() / 2);
    const std::uint32_t size = random.below(4) < zeros ? 0 : random.below(last + 1);
    codes.push_back(static_cast<std::uint16_t>(size | (random.below(2) * f.sign())));
  }
  const auto block = static_cast<std::size_t>(kind.block);
  return {std::move(format), codes, scales(random, kind.e4m3, (count + block - 1) / block)};
}

/// Makes products cancel in pairs, within groups or across them.
void cancel(Operand& a, Operand& b, std::size_t distance, std::uint32_t sign) {
  for (std::size_t i = 0; i + distance < a.codes.size(); i += 2 * distance) {
    for (std::size_t j = i; j < i + distance && j + distance < a.codes.size(); ++j) {
      a.codes[j + distance] = a.codes[j];
      b.codes[j + distance] = static_cast<std::uint16_t>(b.codes[j] ^ sign);
    }
  }
}

constexpr const char* kElements[] = {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"};

TEST_CASE("scaled steps of any operands are sums of exact integers", "[tensor_core][oracle]") {
  Words random(51);
  for (int i = 0; i < 40000; ++i) {
    const Kind& kind = kKinds[i % 4];
    const bool eights = kind.group == 1;
    const std::size_t count =
        i % 3 == 0 ? 1 + random.below(150) : static_cast<std::size_t>(kind.length);
    Operand a = operand(random, kind, eights ? kElements[random.below(5)] : "e2m1", count);
    Operand b = operand(random, kind, eights ? kElements[random.below(5)] : "e2m1", count);
    const auto sign = static_cast<std::uint32_t>(oracle::layout(b.format).sign());
    if (random.below(3) == 0) cancel(a, b, std::size_t{1} << random.below(6), sign);
    std::uint32_t c = random.below(2) == 0 ? 0 : random.below(0x7F800000) | random.below(2) << 31;
    if (random.below(3) == 0) {  // cancels most of the sum
      c = judged(kind, a, b, 0) ^ 0x80000000 ^ random.below(3);
      if ((c & 0x7FFFFFFF) > 0x7F7FFFFF) c = 0;
    }
    CAPTURE(i, kind.name, count, a.format, b.format, c);
    REQUIRE(ours(kind, a, b, c) == judged(kind, a, b, c));
  }
}

TEST_CASE("scaled steps of every pair of codes", "[tensor_core][oracle][exhaustive]") {
  for (const Kind& kind : kKinds) {
    for (const std::string fa : kElements) {
      for (const std::string fb : kElements) {
        if (kind.group != 1 && (fa != "e2m1" || fb != "e2m1")) continue;
        const std::uint8_t one = kind.e4m3 ? 0x38 : 127;
        const auto codes_a = static_cast<std::uint16_t>(2 * oracle::layout(fa).sign());
        const auto codes_b = static_cast<std::uint16_t>(2 * oracle::layout(fb).sign());
        std::string wrong;
        for (std::uint16_t x = 0; x < codes_a; ++x) {
          for (std::uint16_t y = 0; y < codes_b; ++y) {
            const Operand a = {fa, {x}, {one}}, b = {fb, {y}, {one}};
            if (ours(kind, a, b, 0x3F800000) != judged(kind, a, b, 0x3F800000)) {
              wrong = std::to_string(x) + " " + std::to_string(y);
            }
          }
        }
        CAPTURE(kind.name, fa, fb);
        REQUIRE(wrong == "");
      }
    }
  }
}

TEST_CASE("scaled steps of every pair of scales", "[tensor_core][oracle][exhaustive]") {
  for (const Kind& kind : kKinds) {
    for (const std::uint32_t c : {0U, 0x80000001U, 0x3F800001U, 0x7F7FFFFFU}) {
      std::string wrong;
      for (int x = 0; x < 256; ++x) {
        for (int y = 0; y < 256; ++y) {
          // 1.5 * 6 + 0.5 * -0.5
          const Operand a = {"e2m1", {3, 1}, {static_cast<std::uint8_t>(x)}};
          const Operand b = {"e2m1", {7, 9}, {static_cast<std::uint8_t>(y)}};
          if (ours(kind, a, b, c) != judged(kind, a, b, c)) {
            wrong = std::to_string(x) + " " + std::to_string(y);
          }
        }
      }
      CAPTURE(kind.name, c);
      REQUIRE(wrong == "");
    }
  }
}

/// Groups of 16 with one or two products each. `codes`: of A and of B, two for each group.
Operand groups(const Codes& codes, const ScaleCodes& of_groups) {
  Operand out = {"e2m1", Codes(64), of_groups};
  for (std::size_t i = 0; i < codes.size(); ++i) out.codes[i / 2 * 16 + i % 2] = codes[i];
  return out;
}

TEST_CASE("the last bit of mxf4nvf4's alignment", "[tensor_core][table]") {
  struct Row {
    const char* name;
    Codes a, b;         ///< two of each group; 2 is 1.0, 10 is -1.0, 1 is 0.5
    ScaleCodes scales;  ///< E8M0, of A; those of B are 1
    std::uint32_t c, d;
  };
  const std::uint8_t kOne = 127, kKept = 127 - 35, kCut = 127 - 36, kQuarter = 127 - 33;
  const Row rows[] = {
      {"2^-35 beside 1 is kept", {2, 0, 2}, {2, 0, 2}, {kOne, kKept, 0, 0}, 0xBF800000, 0x2E000000},
      {"2^-36 is cut", {2, 0, 2}, {2, 0, 2}, {kOne, kCut, 0, 0}, 0xBF800000, 0},
      {"1.5 * 2^-35 is cut to 2^-35",
       {2, 0, 3},
       {2, 0, 2},
       {kOne, kKept, 0, 0},
       0xBF800000,
       0x2E000000},
      {"-1.5 * 2^-35 is cut toward zero",
       {2, 0, 11},
       {2, 0, 2},
       {kOne, kKept, 0, 0},
       0xBF800000,
       0xAE000000},
      {"0.5 * 0.5 * 2^-33 is kept",
       {2, 0, 1},
       {2, 0, 1},
       {kOne, kQuarter, 0, 0},
       0xBF800000,
       0x2E000000},
      {"halves of the last bit add up within a group",
       {2, 0, 1, 1},
       {2, 0, 2, 2},
       {kOne, kKept, 0, 0},
       0xBF800000,
       0x2E000000},
      {"but not across groups",
       {2, 0, 1, 0, 1},
       {2, 0, 2, 0, 2},
       {kOne, kKept, kKept, 0},
       0xBF800000,
       0},
      {"a group's exponent is its scales', not its sum's: 36 is aligned as 1",
       {7, 0, 15, 0, 2},
       {7, 0, 7, 0, 2},
       {kOne, kOne, kKept, 0},
       0,
       0x2E000000},
      {"C's exponent counts: 32 cuts 2^-31", {2}, {2}, {127 - 31, 0, 0, 0}, 0x42000000, 0x42000000},
      {"a group that cancels keeps its exponent",
       {2, 2, 2},
       {2, 10, 2},
       {kOne + 40, kOne, 0, 0},
       0,
       0},
      {"a group of zeros has none", {0, 0, 2}, {2, 10, 2}, {kOne + 40, kOne, 0, 0}, 0, 0x3F800000},
      {"too large", {7}, {7}, {254, 0, 0, 0}, 0, 0x7F800000},
      {"negative and too large", {15}, {7}, {254, 0, 0, 0}, 0, 0xFF800000},
      {"toward the largest number, not infinity",
       {2},
       {2},
       {127 + 90, 0, 0, 0},
       0x7F7FFFFF,
       0x7F7FFFFF},
      {"a negative sum that rounds to zero", {10}, {2}, {0, 0, 0, 0}, 0, 0x80400000},
  };
  for (const Row& row : rows) {
    const Operand a = groups(row.a, row.scales);
    const Operand b = groups(row.b, {kOne, kOne, kOne, kOne});
    CAPTURE(row.name);
    CHECK(ours(kKinds[3], a, b, row.c) == row.d);
    CHECK(judged(kKinds[3], a, b, row.c) == row.d);
  }
  // A zero scale is no exponent either, and the sign of E4M3's scales is ignored.
  const Operand a = groups({2, 0, 2}, {0x80, 0x38, 0, 0}),
                b = groups({2, 0, 2}, {0x7E, 0xB8, 0, 0});
  CHECK(ours(kKinds[2], a, b, 0) == 0x3F800000);
  // A negative sum below the smallest number is +0: 0.5 * -0.5 * 2^-254.
  CHECK(ours(kKinds[1], {"e2m1", {1}, {0}}, {"e2m1", {9}, {0}}, 0) == 0);
  // A group of one product, the last of 33, is aligned like a group of 16: 2^-35 is kept.
  Operand x = groups({15, 0, 2, 0, 7}, {kOne, kKept, kOne}),
          y = groups({7, 0, 2, 0, 7}, {127, 127, 127});
  for (Operand* const one : {&x, &y}) one->codes.resize(33);
  CHECK(ours(kKinds[3], x, y, 0) == 0x2E000000);
  // The exponent is -139 at least: 2^-149 - 2^-174 is below 2^-149, but 2^-175 is cut.
  const Operand least = groups({2, 0, 10}, {0, 0, 0, 0});
  CHECK(ours(kKinds[3], least, groups({2, 0, 2}, {105, 80, 0, 0}), 0) == 0);
  CHECK(ours(kKinds[3], least, groups({2, 0, 2}, {105, 79, 0, 0}), 0) == 1);
}

TEST_CASE("the last bit of mxf8f6f4's alignment", "[tensor_core][table]") {
  // 1 * 1 - 1, and 2^-25, 2^-26, and 1.5 * 2^-25, with scales of 2^10 and 2^-10.
  const auto found = [](std::uint16_t small_a, std::uint16_t small_b) {
    return ours(kKinds[0], {"e5m2", {0x3C, small_a}, {137}}, {"e5m2", {0x3C, small_b}, {117}},
                0xBF800000);
  };
  CHECK(found(0x04, 0x10) == 0x33000000);  // 2^-14 * 2^-11
  CHECK(found(0x04, 0x0C) == 0);           // 2^-14 * 2^-12
  CHECK(found(0x06, 0x10) == 0x33000000);
  CHECK(found(0x86, 0x10) == 0xB3000000);
  // The exponent is -133 at least: 2^-149 - 2^-158 is below 2^-149, but 2^-159 is cut. Scales:
  // 2^-135.
  const auto least = [](std::uint16_t small) {
    return ours(kKinds[0], {"e5m2", {0x04, 0x84}, {0}}, {"e5m2", {0x3C, small}, {119}}, 0);
  };
  CHECK(least(0x18) == 0);
  CHECK(least(0x14) == 1);
  // A subnormal has the exponent of its format's smallest normal: 0.5 * 0.5 in E2M1 counts as 2^0.
  const Operand half = {"e2m1", {1, 0}, {127}};
  CHECK(ours(kKinds[0], half, half, 0x32800000) == 0x3E800000);  // 2^-26 is cut beside 2^-2
  CHECK(ours(kKinds[0], half, half, 0xBE800000) == 0);
}

TEST_CASE("the published example of scaled steps", "[tensor_core][table]") {
  // arXiv 2511.10909, table 8: 2^23 - 2^23 - 0.5 - 0.25 - 0.125 is -0.75 by mxf8f6f4, whose
  // products are cut to 2^-2, and -0.875 by mxf4nvf4.
  const Operand a = {"e5m2", {0xF0, 0xB8, 0xB4, 0xB0}, {127}};
  const Operand b = {"e5m2", {0x64, 0x3C, 0x3C, 0x3C}, {127}};
  CHECK(ours(kKinds[0], a, b, 0x4B000000) == 0xBF400000);
  Operand x = groups({14, 0, 10, 10}, {138, 127, 127, 127});
  Operand y = groups({6, 0, 2, 1}, {135, 126, 127, 127});
  x.codes[18] = 9, y.codes[18] = 1;
  CHECK(ours(kKinds[3], x, y, 0x4B000000) == 0xBF600000);
}

TEST_CASE("NaN and infinities of scaled steps", "[tensor_core][table]") {
  const Kind &eights = kKinds[0], &mxf4 = kKinds[1], &nvf4 = kKinds[2];
  const auto four = [](const Kind& kind, std::uint8_t sa, std::uint8_t sb, std::uint32_t c) {
    return ours(kind, {"e2m1", {0}, {sa}}, {"e2m1", {0}, {sb}}, c);
  };
  CHECK(four(mxf4, 0xFF, 127, 0) == kNan);
  CHECK(four(mxf4, 127, 0xFF, 0x7F800000) == kNan);
  CHECK(four(nvf4, 0x7F, 0x38, 0) == kNan);
  CHECK(four(nvf4, 0x38, 0xFF, 0) == kNan);
  CHECK(four(nvf4, 0x38, 0x38, 0xFFC00000) == kNan);
  CHECK(four(nvf4, 0x38, 0x38, 0xFF800000) == 0xFF800000);
  const auto eight = [&](const char* fa, std::uint16_t x, const char* fb, std::uint16_t y,
                         std::uint32_t c) {
    return ours(eights, {fa, {x}, {0}}, {fb, {y}, {0}}, c);
  };
  CHECK(eight("e4m3", 0x7F, "e5m2", 0, 0) == kNan);
  CHECK(eight("e5m2", 0x7C, "e2m1", 0x9, 0) == 0xFF800000);  // infinity * -0.5 * 2^-254
  CHECK(eight("e5m2", 0x7C, "e2m1", 0x0, 0) == kNan);
  CHECK(eight("e5m2", 0x7C, "e3m2", 0x1, 0xFF800000) == kNan);
  CHECK(eight("e5m2", 0x7E, "e2m3", 0x1, 0) == kNan);
}

TEST_CASE("chains of scaled steps", "[tensor_core]") {
  Words random(7);
  for (const Kind& kind : kKinds) {
    const auto length = static_cast<std::size_t>(kind.length);
    for (std::size_t count = 1; count <= 2 * length; ++count) {
      const Operand a = operand(random, kind, "e2m1", count),
                    b = operand(random, kind, "e2m1", count);
      Operand padded_a = a, padded_b = b;  // what is missing is zero
      for (Operand* const one : {&padded_a, &padded_b}) {
        one->codes.resize(3 * length);
        one->scales.resize(3 * length / static_cast<std::size_t>(kind.block), 0x11);
      }
      CAPTURE(kind.name, count);
      REQUIRE(ours(kind, a, b, 0xC0490FDB) == ours(kind, padded_a, padded_b, 0xC0490FDB));
    }
  }
  constexpr std::uint16_t kOne[] = {2};
  constexpr std::uint8_t kTwo[] = {128};
  static_assert(scaled_step(kBlackwellMxf4, {kFloat4E2M1, kOne, kTwo}, {kFloat4E2M1, kOne, kTwo}, 1,
                            0x3F800000) == 0x40A00000);
}

TEST_CASE("architectures with scaled steps", "[tensor_core]") {
  for (const Architecture& one : kArchitectures) {
    CHECK(one.mxf4.has_value() == (one.name == "blackwell"));
  }
  CHECK(find_architecture("blackwell")->mxf8f6f4 == kBlackwellMxf8f6f4);
  CHECK(find_architecture("blackwell")->mxf4 == kBlackwellMxf4);
  CHECK(find_architecture("blackwell")->mxf4nvf4 == kBlackwellMxf4nvf4);
}

}  // namespace test_scaled_mma
