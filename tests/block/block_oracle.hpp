// SPDX-License-Identifier: Apache-2.0
// The recipes by exact rationals, from the formats' definitions and the sentences of
// docs/numerics/recipes.md. Shares no code with the library.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace block_oracle {

using Q = boost::multiprecision::cpp_rational;
using boost::multiprecision::cpp_int;

inline Q power_of_two(int e) {
  return e >= 0 ? Q(cpp_int(1) << e) : Q(cpp_int(1), cpp_int(1) << -e);
}

inline Q size_of(const Q& x) { return x < 0 ? Q(-x) : x; }

/// Returns floor(log2(x)) for x > 0.
inline int binade(const Q& x) {
  int e = static_cast<int>(msb(numerator(x))) - static_cast<int>(msb(denominator(x)));
  if (power_of_two(e) > x) --e;
  return e;
}

/// Rounds to a multiple of `unit`, ties to even.
inline Q to_multiple(const Q& x, const Q& unit) {
  const Q scaled = x / unit;
  cpp_int whole = numerator(scaled) / denominator(scaled);
  const Q rest = scaled - Q(whole);
  const Q half(1, 2);
  if (rest > half || (rest == half && whole % 2 != 0)) ++whole;
  return Q(whole) * unit;
}

/// Rounds to binary32, to nearest even. Magnitudes from 2^128 - 2^103 on become infinity.
inline float fl(const Q& x) {
  if (x == 0) return 0;
  const Q size = size_of(x);
  const int e = std::max(binade(size), -126);
  const Q rounded = to_multiple(size, power_of_two(e - 23));
  float out = 0;
  if (rounded >= power_of_two(128)) {
    out = std::numeric_limits<float>::infinity();
  } else {
    const int last = std::max(e - 23, -149);
    const Q units = rounded / power_of_two(last);
    out = std::ldexp(static_cast<float>(static_cast<std::uint32_t>(numerator(units))), last);
  }
  return x < 0 ? -out : out;
}

/// A format by its definition: a sign bit, then an exponent field, then a fraction.
struct Element {
  int exponent_bits, fraction_bits, bias;
  int numbers;  ///< codes without sign that are finite numbers, from 0 on
  int emax;
};
constexpr Element kE2M1 = {2, 1, 1, 8, 2}, kE2M3 = {2, 3, 1, 32, 2}, kE3M2 = {3, 2, 3, 32, 4},
                  kE4M3 = {4, 3, 7, 127, 8}, kE5M2 = {5, 2, 15, 124, 15};

inline Q value(const Element& e, int code) {
  const int field = code >> e.fraction_bits, fraction = code & ((1 << e.fraction_bits) - 1);
  const Q part = Q(fraction) * power_of_two(-e.fraction_bits);
  return field == 0 ? Q(part * power_of_two(1 - e.bias))
                    : Q((1 + part) * power_of_two(field - e.bias));
}

inline Q largest(const Element& e) { return value(e, e.numbers - 1); }

/// Returns the code nearest to a finite value, ties to the even code, saturating.
inline int nearest(const Element& e, float x) {
  const int sign = std::signbit(x) ? 1 << (e.exponent_bits + e.fraction_bits) : 0;
  if (x == 0) return sign;
  const Q size = size_of(Q(x));
  int low = 0, high = e.numbers - 1;  // size is between their values, or beyond
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (value(e, middle) <= size ? low : high) = middle;
  }
  const Q middle = (value(e, low) + value(e, high)) / 2;
  return sign | (size < middle || (size == middle && low % 2 == 0) ? low : high);
}

struct Block {
  std::uint32_t scale = 0;
  std::vector<int> codes;
};

inline float largest_magnitude(const std::vector<float>& x) {
  float most = 0;
  for (const float v : x) most = std::max(most, std::fabs(v));
  return most;
}

/// Transformer Engine's NVFP4 of finite values, at least one not zero. g: the tensor's largest.
inline Block nvfp4(const std::vector<float>& x, float g) {
  const Q most = (power_of_two(24) - 1) * power_of_two(104);
  const auto at_most = [&](const Q& v) { return v > most ? most : v; };
  const auto rounded = [](const Q& v) { return Q(fl(v)); };
  const Q enc = std::isinf(fl(Q(2688) / Q(g))) ? most : Q(fl(Q(2688) / Q(g)));
  const Q dec = rounded(1 / enc);
  const Q mul = rounded(enc * rounded(Q(1, 6)));
  const float s = fl(at_most(Q(largest_magnitude(x)) * mul));
  Block out;
  out.scale = static_cast<std::uint32_t>(nearest(kE4M3, s));
  const Q product = rounded(value(kE4M3, static_cast<int>(out.scale)) * dec);
  const bool infinite = product == 0 || std::isinf(fl(1 / product));
  const Q es = infinite ? most : rounded(1 / product);
  for (const float v : x) {
    const Q y = size_of(Q(v) * es);
    const float scaled = y > 6 ? 6.0F : fl(y);
    out.codes.push_back(nearest(kE2M1, std::signbit(v) ? -scaled : scaled));
  }
  return out;
}

enum class Rule { floor, even, ceil, round_up };

/// B of MX for b > 0, before it is limited to 0 to 254.
inline int mx_scale(const Element& e, Rule rule, float b) {
  const Q size(b);
  const int exponent = std::max(binade(size), -127);  // a field of 0 stands for 2^-127
  switch (rule) {
    case Rule::floor: return exponent + 127 - e.emax;
    case Rule::even: {
      if (binade(size) < -126) return 0;
      const Q rounded = size + power_of_two(exponent - e.fraction_bits - 1);
      return binade(rounded) + 127 - e.emax;
    }
    case Rule::ceil: {
      const bool power = size == power_of_two(exponent);
      return exponent + (power ? 0 : 1) + 127 - e.emax;
    }
    case Rule::round_up: break;
  }
  const Q d(fl(size * Q(fl(1 / largest(e)))));
  if (d <= power_of_two(-127)) return 0;
  const int k = binade(d);
  return k + 127 + (d == power_of_two(k) ? 0 : 1);
}

inline Block mx(const Element& e, Rule rule, const std::vector<float>& x) {
  const float b = largest_magnitude(x);
  Block out;
  if (b != 0) {
    out.scale = static_cast<std::uint32_t>(std::min(254, std::max(0, mx_scale(e, rule, b))));
  }
  const Q factor = power_of_two(127 - static_cast<int>(out.scale));
  for (const float v : x) {
    const Q y = Q(v) * factor;
    const float limited = size_of(y) > largest(e) ? fl(largest(e)) : fl(size_of(y));
    out.codes.push_back(nearest(e, std::signbit(v) ? -limited : limited));
  }
  return out;
}

/// Transformer Engine's FP8 of a block of finite values. The stored scale is a binary32 value.
struct Fp8Block {
  float stored = 0;
  std::vector<int> codes;
};
inline Fp8Block fp8(const Element& e, bool power_of_two_scale, const std::vector<float>& x) {
  const float b = largest_magnitude(x);
  float scale = 1;
  if (b != 0) {
    scale = fl(largest(e) / Q(b));
    if (std::isinf(scale)) scale = std::numeric_limits<float>::max();
    if (power_of_two_scale) scale = std::ldexp(1.0F, binade(Q(scale)));
  }
  Fp8Block out;
  out.stored = fl(1 / Q(scale));
  for (const float v : x) {
    const Q y = size_of(Q(v) * Q(scale));
    const float limited = y > largest(e) ? fl(largest(e)) : fl(y);
    out.codes.push_back(nearest(e, std::signbit(v) ? -limited : limited));
  }
  return out;
}

}  // namespace block_oracle
