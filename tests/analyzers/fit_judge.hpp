// SPDX-License-Identifier: Apache-2.0
// The judge of fits: every value rounded by the oracle, sums in exact rationals.
#pragma once

#include <cmath>
#include <vector>

#include "halfscope/table/binade_table.hpp"
#include "number/block_judge.hpp"
#include "oracle.hpp"

namespace halfscope::test {

using oracle::Rational;

inline Rational exactly(double x) {
  int exponent = 0;
  const double half = std::frexp(x, &exponent);
  return Rational(static_cast<std::int64_t>(std::ldexp(half, 53))) *
         oracle::power_of_two(exponent - 53);
}

/// What rounding makes of values times 2^k.
struct Judged {
  Classes classes;
  Rational signal, noise;

  double db() const { return 10 * std::log10(static_cast<double>(Rational(signal / noise))); }
};

inline Judged judge(const std::vector<double>& values, std::string_view format, int k,
                    bool flush = false) {
  const oracle::Layout& f = oracle::layout(format);
  Judged j;
  for (const double value : values) {
    if (value == 0 || !std::isfinite(value)) continue;
    const Rational x = abs(exactly(value)) * oracle::power_of_two(k);
    const oracle::Class c = oracle::class_of(f, x);
    const bool zero = c == oracle::Class::zero || (flush && c == oracle::Class::subnormal);
    (zero                            ? j.classes.flushed_to_zero
     : c == oracle::Class::subnormal ? j.classes.subnormal
     : c == oracle::Class::normal    ? j.classes.normal
                                     : j.classes.overflow) += 1;
    const Rational error = zero ? x : Rational(x - oracle::value(f, oracle::round(f, x).bits));
    j.signal += x * x;
    j.noise += error * error;
  }
  return j;
}

/// MX blocks of the values of rows of `row` elements.
struct JudgedBlocks {
  std::uint64_t values = 0, flushed = 0, saturated = 0, in_nan = 0;
  Rational signal, noise;

  double db() const { return 10 * std::log10(static_cast<double>(Rational(signal / noise))); }
};

inline void judge_block(JudgedBlocks& j, const block_judge::Element& e, const double* x,
                        std::size_t n) {
  Rational largest = 0;
  bool finite = true;
  for (std::size_t i = 0; i < n; ++i) {
    finite = finite && std::isfinite(x[i]);
    if (finite) largest = std::max(largest, Rational(abs(exactly(x[i]))));
  }
  if (!finite) {
    for (std::size_t i = 0; i < n; ++i) j.in_nan += std::isfinite(x[i]) && x[i] != 0 ? 1 : 0;
    return;
  }
  if (largest == 0) return;
  for (std::size_t i = 0; i < n; ++i) j.values += x[i] != 0 ? 1 : 0;
  const Rational scale = block_judge::power_of_two(block_judge::floor_exponent(e, largest));
  for (std::size_t i = 0; i < n; ++i) {
    const Rational v = abs(exactly(x[i]));
    const block_judge::Answer a = block_judge::element(e, Rational(v / scale), false);
    const Rational q = block_judge::magnitudes(e)[a.code] * scale;
    j.flushed += v != 0 && a.code == 0 ? 1 : 0;
    j.saturated += a.overflow ? 1 : 0;
    j.signal += v * v;
    j.noise += (v - q) * (v - q);
  }
}

inline JudgedBlocks judge_blocks(const std::vector<double>& values, std::size_t row,
                                 std::string_view element) {
  JudgedBlocks j;
  for (const block_judge::Element& e : block_judge::kElements) {
    if (e.name != element) continue;
    for (std::size_t r = 0; r < values.size(); r += row) {
      for (std::size_t i = 0; i < row; i += 32) {
        judge_block(j, e, values.data() + r + i, std::min<std::size_t>(32, row - i));
      }
    }
  }
  return j;
}

}  // namespace halfscope::test
