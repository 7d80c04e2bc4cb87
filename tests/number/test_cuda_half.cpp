// SPDX-License-Identifier: Apache-2.0
// CUDA's half intrinsics: unary functions over all 65,536 inputs against 50 decimal digits, binary
// and ternary ones against exact integers. CUDA's own host code judges them in tests/cuda.
#include <fmt/format.h>

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "catch.hpp"
#include "halfscope/number/cuda_half.hpp"
#include "number/half_judge.hpp"

namespace test_cuda_half {

namespace cuda_half = halfscope::cuda_half;
using half_judge::Int128;
using Bits = std::uint16_t;
using Wide = boost::multiprecision::cpp_bin_float_50;

constexpr Bits kNan = 0x7FFF;
constexpr Bits kInfinity = 0x7C00;

Wide value(Bits a) { return Wide(std::ldexp(half_judge::signed_units(a), -24)); }

/// Rounds y, known to 50 digits. `nearest` becomes the smallest relative distance of any y to a
/// midpoint: where it is far above 10^-50 and above a double's error, the digits decided.
Bits rounded(const Wide& y, double& nearest) {
  const Wide magnitude = abs(y);
  const Wide in_units = ldexp(magnitude, 25);
  double closest = 1;
  const Bits result = half_judge::round(y < 0, [&](std::int64_t m) {
    const Wide difference = Wide(m) - in_units;
    if (difference == 0) return 0;
    closest = std::min(closest, std::abs(static_cast<double>(Wide(difference / in_units))));
    return difference < 0 ? -1 : 1;
  });
  nearest = std::min(nearest, closest);
  return result;
}

/// e^x and the like. 64 is beyond every overflow and every rounding to zero.
template <typename Power>
Bits exponential(Bits a, double& nearest, Power power) {
  if (half_judge::is_nan(a)) return kNan;
  const bool beyond = (a & 0x7FFF) >= 0x5400;  // |x| >= 64
  if (beyond) return half_judge::is_negative(a) ? 0 : kInfinity;
  return rounded(power(value(a)), nearest);
}

template <typename Logarithm>
Bits logarithm(Bits a, double& nearest, Logarithm log_of) {
  if ((a & 0x7FFF) == 0) return 0xFC00;
  if (half_judge::is_nan(a) || half_judge::is_negative(a)) return kNan;
  if (half_judge::is_infinite(a)) return kInfinity;
  return rounded(log_of(value(a)), nearest);
}

Bits want_exp(Bits a, double& nearest) {
  return exponential(a, nearest, [](const Wide& x) { return Wide(exp(x)); });
}
/// Integer powers are exact: 2^-25 is a tie.
Bits want_exp2(Bits a, double& nearest) {
  return exponential(a, nearest, [](const Wide& x) {
    const Wide whole = floor(x);
    return Wide(ldexp(Wide(exp(Wide((x - whole) * log(Wide(2))))), static_cast<int>(whole)));
  });
}
Bits want_exp10(Bits a, double& nearest) {
  return exponential(a, nearest, [](const Wide& x) { return Wide(exp(Wide(x * log(Wide(10))))); });
}
Bits want_log(Bits a, double& nearest) {
  return logarithm(a, nearest, [](const Wide& x) { return Wide(log(x)); });
}
Bits want_log2(Bits a, double& nearest) {
  return logarithm(a, nearest, [](const Wide& x) { return Wide(log(x) / log(Wide(2))); });
}
Bits want_log10(Bits a, double& nearest) {
  return logarithm(a, nearest, [](const Wide& x) { return Wide(log(x) / log(Wide(10))); });
}
Bits want_rcp(Bits a, double& nearest) {
  const auto sign = static_cast<Bits>(a & 0x8000);
  if (half_judge::is_nan(a)) return kNan;
  if (half_judge::is_infinite(a)) return sign;
  if (a == sign) return static_cast<Bits>(sign | kInfinity);
  return rounded(1 / value(a), nearest);
}
Bits want_sqrt(Bits a, double& nearest) {
  if ((a & 0x7FFF) == 0 || a == kInfinity) return a;
  if (half_judge::is_nan(a) || half_judge::is_negative(a)) return kNan;
  return rounded(sqrt(value(a)), nearest);
}
Bits want_rsqrt(Bits a, double& nearest) {
  if ((a & 0x7FFF) == 0) return static_cast<Bits>(a | kInfinity);
  if (half_judge::is_nan(a) || half_judge::is_negative(a)) return kNan;
  if (a == kInfinity) return 0;
  return rounded(1 / sqrt(value(a)), nearest);
}

struct Unary {
  const char* name;
  Bits (*ours)(Bits);
  Bits (*want)(Bits, double&);
};

constexpr Unary kUnary[] = {
    {"hrcp", cuda_half::hrcp, want_rcp},       {"hsqrt", cuda_half::hsqrt, want_sqrt},
    {"hrsqrt", cuda_half::hrsqrt, want_rsqrt}, {"hexp", cuda_half::hexp, want_exp},
    {"hexp2", cuda_half::hexp2, want_exp2},    {"hexp10", cuda_half::hexp10, want_exp10},
    {"hlog", cuda_half::hlog, want_log},       {"hlog2", cuda_half::hlog2, want_log2},
    {"hlog10", cuda_half::hlog10, want_log10},
};

// The four operations in exact integers. Specials by IEEE 754-2019, clauses 6 and 7.

Bits want_fma(Bits a, Bits b, Bits c) {
  using namespace half_judge;
  if (is_nan(a) || is_nan(b) || is_nan(c)) return kNan;
  const bool negative = is_negative(a) != is_negative(b);
  const auto infinity = [](bool minus) { return static_cast<Bits>(minus ? 0xFC00 : 0x7C00); };
  if (is_infinite(a) || is_infinite(b)) {
    if (signed_units(a) == 0 || signed_units(b) == 0) return kNan;
    return is_infinite(c) && is_negative(c) != negative ? kNan : infinity(negative);
  }
  if (is_infinite(c)) return c;
  const Int128 product = Int128{signed_units(a)} * signed_units(b);
  const Int128 sum = product + Int128{signed_units(c)} * (1 << 24);
  if (sum != 0) return round_exact(sum);
  const bool product_is_zero = product == 0;
  return product_is_zero && negative && is_negative(c) ? 0x8000 : 0;
}
Bits want_add(Bits a, Bits b) { return want_fma(a, 0x3C00, b); }
Bits want_sub(Bits a, Bits b) { return want_fma(b, 0xBC00, a); }
Bits want_mul(Bits a, Bits b) {
  const bool negative = half_judge::is_negative(a) != half_judge::is_negative(b);
  return want_fma(a, b, negative ? 0x8000 : 0);  // adds nothing, and no sign of zero
}
Bits want_div(Bits a, Bits b) {
  using namespace half_judge;
  const auto sign = static_cast<Bits>((a ^ b) & 0x8000);
  const std::int64_t n = units(a & 0x7FFF), d = units(b & 0x7FFF);
  if (is_nan(a) || is_nan(b) || (is_infinite(a) && is_infinite(b)) || (n == 0 && d == 0)) {
    return kNan;
  }
  if (is_infinite(a) || d == 0) return static_cast<Bits>(sign | kInfinity);
  if (is_infinite(b)) return sign;
  return half_judge::round(sign != 0, [&](std::int64_t m) {  // n / d against m * 2^-25
    return sign_of(Int128{m} * d - Int128{n} * (1 << 25));
  });
}

/// Clamped to [0, 1] with NaN to +0 (.sat), or negative numbers to +0 (.relu).
Bits saturated(Bits a) {
  if (half_judge::is_nan(a) || half_judge::is_negative(a)) return 0;
  return half_judge::units(a) > half_judge::units(0x3C00) ? Bits{0x3C00} : a;
}
Bits rectified(Bits a) {
  return !half_judge::is_nan(a) && half_judge::is_negative(a) ? Bits{0} : a;
}

/// By definition on the order of values, -0 below +0.
Bits larger(Bits a, Bits b, bool nan_wins) {
  using namespace half_judge;
  if (is_nan(a) && is_nan(b)) return kNan;
  if (is_nan(a) || is_nan(b)) return nan_wins ? kNan : is_nan(a) ? b : a;
  const std::int64_t x = signed_units(a), y = signed_units(b);
  return x == y ? (is_negative(a) ? b : a) : x > y ? a : b;
}
Bits negated(Bits a) { return static_cast<Bits>(a ^ 0x8000); }
Bits smaller(Bits a, Bits b, bool nan_wins) {
  const Bits r = larger(negated(a), negated(b), nan_wins);
  return half_judge::is_nan(r) ? kNan : negated(r);
}

struct Binary {
  const char* name;
  Bits (*ours)(Bits, Bits);
  Bits (*want)(Bits, Bits);
};

constexpr Binary kBinary[] = {
    {"hadd", cuda_half::hadd, want_add},
    {"hsub", cuda_half::hsub, want_sub},
    {"hmul", cuda_half::hmul, want_mul},
    {"hdiv", cuda_half::hdiv, want_div},
    {"hadd_sat", cuda_half::hadd_sat, [](Bits a, Bits b) { return saturated(want_add(a, b)); }},
    {"hsub_sat", cuda_half::hsub_sat, [](Bits a, Bits b) { return saturated(want_sub(a, b)); }},
    {"hmul_sat", cuda_half::hmul_sat, [](Bits a, Bits b) { return saturated(want_mul(a, b)); }},
    {"hmax", cuda_half::hmax, [](Bits a, Bits b) { return larger(a, b, false); }},
    {"hmin", cuda_half::hmin, [](Bits a, Bits b) { return smaller(a, b, false); }},
    {"hmax_nan", cuda_half::hmax_nan, [](Bits a, Bits b) { return larger(a, b, true); }},
    {"hmin_nan", cuda_half::hmin_nan, [](Bits a, Bits b) { return smaller(a, b, true); }},
};

/// Every exponent, both signs, fractions at the ends and mixed.
std::vector<Bits> structured() {
  std::vector<Bits> out;
  for (unsigned field = 0; field < 32; ++field) {
    for (const unsigned fraction : {0x000U, 0x001U, 0x155U, 0x200U, 0x3FEU, 0x3FFU}) {
      out.push_back(static_cast<Bits>(field << 10 | fraction));
      out.push_back(static_cast<Bits>(0x8000 | field << 10 | fraction));
    }
  }
  return out;
}

std::string disagreement(const Binary& row) {
  for (const Bits a : structured()) {
    for (const Bits b : structured()) {
      const Bits got = row.ours(a, b), want = row.want(a, b);
      if (got == want) continue;
      return fmt::format("{}({:04X}, {:04X}): found {:04X}, want {:04X}", row.name, a, b, got,
                         want);
    }
  }
  return {};
}

std::string disagreement_of_fma(Bits a, Bits b, Bits c) {
  const Bits want = want_fma(a, b, c);
  const bool same = cuda_half::hfma(a, b, c) == want &&
                    cuda_half::hfma_sat(a, b, c) == saturated(want) &&
                    cuda_half::hfma_relu(a, b, c) == rectified(want);
  return same ? "" : fmt::format("hfma({:04X}, {:04X}, {:04X}): want {:04X}", a, b, c, want);
}

TEST_CASE("unary half functions are correctly rounded, all 65,536 inputs",
          "[number][cuda_half][oracle]") {
  for (const Unary& row : kUnary) {
    double nearest = 1;
    std::string wrong;
    for (unsigned code = 0; code < 0x10000 && wrong.empty(); ++code) {
      const auto a = static_cast<Bits>(code);
      const Bits got = row.ours(a), want = row.want(a, nearest);
      if (got == want) continue;
      wrong = fmt::format("{}({:04X}): found {:04X}, want {:04X}", row.name, code, got, want);
    }
    REQUIRE(wrong == "");
    CAPTURE(row.name, nearest);
    CHECK(nearest > 0x1p-40);  // a double's last place is 2^-52: its error cannot change a result
  }
}

TEST_CASE("binary half operations, structured pairs", "[number][cuda_half][oracle]") {
  for (const Binary& row : kBinary) REQUIRE(disagreement(row) == "");
}

TEST_CASE("hfma, hfma_sat and hfma_relu, structured triples", "[number][cuda_half][oracle]") {
  REQUIRE(cuda_half::hfma(0x39C0, 0xC3FE, 0x07FE) == 0xC1BF);  // by way of binary32: C1BE
  const std::vector<Bits> all = structured();
  std::string wrong;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < all.size(); ++j) {
      for (std::size_t k = (i + j) % 7; k < all.size() && wrong.empty(); k += 7) {
        wrong = disagreement_of_fma(all[i], all[j], all[k]);
      }
    }
  }
  REQUIRE(wrong == "");
}

TEST_CASE("half conversions keep CUDA's NaN and directions", "[number][cuda_half][table]") {
  const float inf = std::numeric_limits<float>::infinity();
  const float minus_nan = -std::numeric_limits<float>::quiet_NaN();
  CHECK(cuda_half::float2half_rn(minus_nan) == kNan);  // no sign
  CHECK(cuda_half::float2half_rn(65520.0F) == kInfinity);
  CHECK(cuda_half::float2half_rz(65520.0F) == 0x7BFF);
  CHECK(cuda_half::float2half_rz(-inf) == 0xFC00);
  CHECK(cuda_half::float2half_rd(1e30F) == 0x7BFF);
  CHECK(cuda_half::float2half_rd(-1e30F) == 0xFC00);
  CHECK(cuda_half::float2half_rd(-1e-30F) == 0x8001);
  CHECK(cuda_half::float2half_ru(-1e-30F) == 0x8000);
  CHECK(cuda_half::float2half_ru(1e-30F) == 0x0001);
  CHECK(cuda_half::double2half(1 + 0x1p-11 + 0x1p-52) == 0x3C01);  // by way of float: 3C00
  CHECK(halfscope::detail::bit_cast<std::uint32_t>(cuda_half::half2float(0xFC01)) == 0x7FFFFFFF);
  CHECK(cuda_half::half2float(0x8001) == -0x1p-24F);
}

TEST_CASE("exponentials and logarithms leave errno alone", "[number][cuda_half][table]") {
  errno = 0;
  for (const Unary& row : kUnary) {
    for (unsigned code = 0; code < 0x10000; ++code) row.ours(static_cast<Bits>(code));
  }
  CHECK(errno == 0);
}

}  // namespace test_cuda_half
