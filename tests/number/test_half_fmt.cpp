// SPDX-License-Identifier: Apache-2.0
// {fmt} and streams.
#include "halfscope/number/half_fmt.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <iomanip>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/half_stream.hpp"

namespace test_half_fmt {

using namespace halfscope;

TEST_CASE("a half in {fmt}", "[number][half][table]") {
  const half tenth = 0.1_h;
  CHECK(fmt::format("{}", tenth) == "0.1");
  CHECK(fmt::format("{0} {0:}", tenth) == "0.1 0.1");
  CHECK(fmt::format("{}", 65504_h) == "65504");
  CHECK(fmt::format("{}", half::from_bits(1)) == "6e-08");
  CHECK(fmt::format("{}", half(1)) == "1");
  CHECK(fmt::format("{}", -half(0)) == "-0");
  CHECK(fmt::format("{}", 0.1_bf16) == "0.1");
  CHECK(fmt::format("{}", float8_e4m3(448)) == "448");
  CHECK(fmt::format("{}", -std::numeric_limits<half>::infinity()) == "-inf");
  CHECK(fmt::format("{}", std::numeric_limits<half>::quiet_NaN()) == "nan");
  CHECK(fmt::format("{}", std::vector{1_h, 2_h}.front()) == "1");
  // Width, fill, alignment and sign leave the digits as they are.
  CHECK(fmt::format("{:8}|", tenth) == "     0.1|");
  CHECK(fmt::format("{:<8}|", tenth) == "0.1     |");
  CHECK(fmt::format("{:*^9}", tenth) == "***0.1***");
  CHECK(fmt::format("{:.>6}", tenth) == "...0.1");
  CHECK(fmt::format("{:e<6}", tenth) == "0.1eee");
  CHECK(fmt::format("{:<<6}", tenth) == "0.1<<<");
  CHECK(fmt::format("{:\xC2\xB7>6}", tenth) ==
        "\xC2\xB7\xC2\xB7\xC2\xB7"
        "0.1");
  CHECK(fmt::format("{:+}", tenth) == "+0.1");
  CHECK(fmt::format("{: }", tenth) == " 0.1");
  CHECK(fmt::format("{:08}", -tenth) == "-00000.1");
  CHECK(fmt::format("{:{}}|{:{w}}|", tenth, 6, tenth, fmt::arg("w", 5)) == "   0.1|  0.1|");
  // A precision or a type is of the exact value, 0.0999755859375.
  CHECK(fmt::format("{:.3f}", tenth) == "0.100");
  CHECK(fmt::format("{:.13f}", tenth) == "0.0999755859375");
  CHECK(fmt::format("{:f}", tenth) == "0.099976");
  CHECK(fmt::format("{:e}", tenth) == "9.997559e-02");
  CHECK(fmt::format("{:g}", tenth) == "0.0999756");
  CHECK(fmt::format("{:a}", tenth) == "0x1.998p-4");
  CHECK(fmt::format("{:.>12.4e}", tenth) == "..9.9976e-02");
  CHECK(fmt::format("{:.{}f}", tenth, 5) == "0.09998");
  CHECK(fmt::format("{:{w}.{p}f}", tenth, fmt::arg("w", 9), fmt::arg("p", 4)) == "   0.1000");
  CHECK_THROWS_AS(fmt::format(fmt::runtime("{:d}"), tenth), fmt::format_error);
  CHECK_THROWS_AS(fmt::format(fmt::runtime("{:"), tenth), fmt::format_error);
}

TEST_CASE("every half comes back from {}", "[number][half]") {
  std::uint32_t wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const half x = half::from_bits(static_cast<std::uint16_t>(bits));
    if (!(x == x)) continue;
    const std::string text = fmt::format("{}", x);
    const auto back = from_text<half>(text);
    std::string digits = to_text(x);  // the same digits, perhaps in the other notation
    if (!back || back->bits() != bits || text.size() > digits.size() + 4) wrong = bits;
  }
  REQUIRE(wrong == 0);
}

TEST_CASE("a half on a stream", "[number][half][table]") {
  const auto written = [](auto x, auto... manipulators) {
    std::ostringstream out;
    static_cast<void>((out << ... << manipulators));
    out << x;
    return out.str();
  };
  CHECK(written(0.1_h) == "0.1");
  CHECK(written(65504_h, std::setprecision(2)) == "65504");
  CHECK(written(0.1_h, std::setw(6), std::setfill('.')) == "...0.1");
  CHECK(written(0.1_h, std::fixed, std::setprecision(7)) == "0.0999756");
  CHECK(written(0.1_h, std::scientific, std::setprecision(3)) == "9.998e-02");
  CHECK(written(0.1_h, std::hexfloat) == "0x1.998p-4");
  CHECK(written(-float4_e2m1(6)) == "-6");
  CHECK(written(std::numeric_limits<half>::quiet_NaN()) == "nan");
}

TEST_CASE("text to half and back", "[number][half]") {
  CHECK(to_text(0.1_h) == "0.1");
  CHECK(from_text<half>("0.1") == 0.1_h);
  CHECK(from_text<bfloat16>("-0x1p-3") == bfloat16(-0.125));
  CHECK_FALSE(from_text<half>("0.1h"));
}

}  // namespace test_half_fmt
