// SPDX-License-Identifier: Apache-2.0
// std::numeric_limits by the C++ standard's definitions, in exact rationals; hashing.
#include "halfscope/number/half_limits.hpp"

#include <bit>
#include <cstdint>
#include <limits>
#include <string_view>
#include <unordered_set>

#include "catch.hpp"
#include "halfscope/number/from_text.hpp"
#include "halfscope/number/half.hpp"
#include "oracle.hpp"

namespace test_half_limits {

using namespace halfscope;
using oracle::Rational;

const oracle::Layout& layout_of(Format f) {
  for (const NamedFormat& row : kFormats) {
    if (row.format == f) return oracle::layout(row.name);
  }
  throw std::logic_error("no such format");
}

Rational power_of_ten(int n) {
  const oracle::Integer power = pow(oracle::Integer(10), static_cast<unsigned>(n < 0 ? -n : n));
  return n < 0 ? Rational(1, power) : Rational(power);
}

/// radix^x <= 10^y compared in integers: floor(digits * log10(2)) and its like.
bool power_of_two_reaches(int x, int y) { return oracle::power_of_two(x) >= power_of_ten(y); }

TEMPLATE_TEST_CASE("limits are what the standard defines", "[number][half]", half, bfloat16, tf32,
                   binary32, float8_e4m3, float8_e5m2, float6_e3m2, float6_e2m3, float4_e2m1) {
  using L = std::numeric_limits<TestType>;
  const oracle::Layout& f = layout_of(TestType::kFormat);
  const auto value = [&](TestType x) { return oracle::value(f, x.bits()); };
  const auto smallest_normal = std::uint64_t{1} << f.fraction_bits;

  STATIC_REQUIRE(L::is_specialized);
  STATIC_REQUIRE((L::is_signed && !L::is_integer && !L::is_exact));
  STATIC_REQUIRE((L::is_bounded && !L::is_modulo && L::radix == 2));
  STATIC_REQUIRE((!L::traps && !L::tinyness_before && !L::has_denorm_loss));
  STATIC_REQUIRE(L::has_denorm == std::denorm_present);
  STATIC_REQUIRE(L::round_style == std::round_to_nearest);
  CHECK(L::has_infinity == (f.top == oracle::Top::infinity_and_nan));
  CHECK(L::has_quiet_NaN == (f.top != oracle::Top::numbers));
  CHECK(L::has_signaling_NaN == (f.top == oracle::Top::infinity_and_nan));
  CHECK(L::is_iec559 == (f.top == oracle::Top::infinity_and_nan));

  CHECK(L::digits == f.fraction_bits + 1);
  CHECK(value(L::min()) == oracle::value(f, smallest_normal));
  CHECK(value(L::max()) == oracle::value(f, f.last()));
  CHECK(L::lowest().bits() == (f.sign() | f.last()));
  CHECK(value(L::denorm_min()) == oracle::value(f, 1));
  CHECK(value(L::epsilon()) == oracle::power_of_two(1 - L::digits));
  CHECK(value(L::round_error()) == Rational(1, 2));
  CHECK(value(L::min()) == oracle::power_of_two(L::min_exponent - 1));
  CHECK(value(L::max()) >= oracle::power_of_two(L::max_exponent - 1));
  CHECK(value(L::max()) < oracle::power_of_two(L::max_exponent));
  // The extreme powers of ten among the normal numbers, and the next ones beyond them.
  CHECK(power_of_ten(L::min_exponent10) >= value(L::min()));
  CHECK(power_of_ten(L::min_exponent10 - 1) < value(L::min()));
  CHECK(power_of_ten(L::max_exponent10) <= value(L::max()));
  CHECK(power_of_ten(L::max_exponent10 + 1) > value(L::max()));
  // floor((digits - 1) * log10(2)), ceil(digits * log10(2) + 1)
  CHECK(power_of_two_reaches(L::digits - 1, L::digits10));
  CHECK_FALSE(power_of_two_reaches(L::digits - 1, L::digits10 + 1));
  CHECK_FALSE(power_of_two_reaches(L::digits, L::max_digits10 - 1));
  CHECK(power_of_two_reaches(L::digits, L::max_digits10 - 2));
  if (L::has_infinity) CHECK(L::infinity().bits() == f.infinity());
  if (L::has_quiet_NaN) CHECK_FALSE(L::quiet_NaN() == L::quiet_NaN());
  if (L::has_signaling_NaN) {
    CHECK(L::signaling_NaN().bits() == f.infinity() + 1);
    CHECK((L::quiet_NaN().bits() & smallest_normal / 2) != 0);
  }
}

TEST_CASE("binary32's limits are float's", "[number][half]") {
  using L = std::numeric_limits<binary32>;
  using Want = std::numeric_limits<float>;
  const auto same = [](binary32 a, float b) { return a.bits() == std::bit_cast<std::uint32_t>(b); };
  CHECK(L::digits10 == Want::digits10);
  CHECK(L::max_digits10 == Want::max_digits10);
  CHECK(L::min_exponent == Want::min_exponent);
  CHECK(L::max_exponent == Want::max_exponent);
  CHECK(L::min_exponent10 == Want::min_exponent10);
  CHECK(L::max_exponent10 == Want::max_exponent10);
  CHECK(L::is_iec559 == Want::is_iec559);
  CHECK(L::has_denorm == Want::has_denorm);
  CHECK(same(L::min(), Want::min()));
  CHECK(same(L::max(), Want::max()));
  CHECK(same(L::lowest(), Want::lowest()));
  CHECK(same(L::epsilon(), Want::epsilon()));
  CHECK(same(L::round_error(), Want::round_error()));
  CHECK(same(L::denorm_min(), Want::denorm_min()));
  CHECK(same(L::infinity(), Want::infinity()));
  CHECK(same(L::quiet_NaN(), Want::quiet_NaN()));
}

TEST_CASE("the figures of binary16 and bfloat16", "[number][half][table]") {
  using H = std::numeric_limits<half>;
  using B = std::numeric_limits<bfloat16>;
  STATIC_REQUIRE((H::digits == 11 && H::digits10 == 3 && H::max_digits10 == 5));
  STATIC_REQUIRE((H::min_exponent == -13 && H::min_exponent10 == -4));
  STATIC_REQUIRE((H::max_exponent == 16 && H::max_exponent10 == 4));
  STATIC_REQUIRE((H::max() == 65504_h && H::min() == 0x1p-14_h && H::epsilon() == 0x1p-10_h));
  STATIC_REQUIRE((B::digits == 8 && B::digits10 == 2 && B::max_digits10 == 4));
  STATIC_REQUIRE((std::numeric_limits<const half>::digits == 11));
}

TEST_CASE("equal numbers hash alike", "[number][half]") {
  const std::hash<half> hash;
  CHECK(hash(half(0)) == hash(-half(0)));
  std::unordered_set<half> all;
  std::unordered_set<std::size_t> hashes;
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const half x = half::from_bits(static_cast<std::uint16_t>(bits));
    if (!(x == x)) continue;
    all.insert(x);
    hashes.insert(hash(x));
  }
  CHECK(all.size() == 2 * 0x7C01 - 1);  // the zeros are one
  CHECK(hashes.size() == all.size());
}

}  // namespace test_half_limits
