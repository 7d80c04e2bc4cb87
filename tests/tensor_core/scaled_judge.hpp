// SPDX-License-Identifier: Apache-2.0
// Steps of block formats in exact integers, which share no code with the library: the judge decodes
// by oracle.hpp, aligns by values, divides, and rounds by bisection.
#pragma once

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "halfscope/tensor_core/mma.hpp"
#include "oracle.hpp"

namespace test_scaled_mma {

using oracle::Dyadic;
using oracle::Integer;
using oracle::Layout;

using Codes = std::vector<std::uint16_t>;
using ScaleCodes = std::vector<std::uint8_t>;

struct Operand {
  std::string format;
  Codes codes;
  ScaleCodes scales;
};

/// The rules of docs/tensor-core.md once more, not read from the library.
struct Kind {
  const char* name;
  halfscope::tensor_core::ScaledUnit unit;  ///< under test
  int length, group, block, fraction, floor;
  bool e4m3;
};
inline constexpr std::uint32_t kNan = 0x7FFFFFFF;

// Numbers are integers in units of 2^-kUnit.
inline constexpr int kUnit = 700;
inline Integer in_units(const Integer& significand, int quantum) {
  return significand << (quantum + kUnit);
}

/// An encoding as the judge sees it.
struct Read {
  Integer significand = 0;  ///< signed
  int quantum = 0, exponent = 0;
  bool nan = false, infinite = false, negative = false;
};

inline Read read(const Layout& f, std::uint32_t code) {
  const std::uint64_t size = code & (f.sign() - 1);
  const bool negative = (code & f.sign()) != 0;
  if (size > f.last() && f.top != oracle::Top::numbers) {
    const bool infinite = f.top == oracle::Top::infinity_and_nan && size == f.after_last();
    return {.nan = !infinite, .infinite = infinite, .negative = negative};
  }
  const Dyadic x = oracle::magnitude(f, size);
  const int leading = x.significand == 0 ? 0 : static_cast<int>(msb(Integer(x.significand)));
  return {.significand = negative ? -Integer(x.significand) : Integer(x.significand),
          .quantum = x.quantum,
          .exponent = std::max(x.quantum + leading, f.min_exponent()),
          .negative = negative};
}

inline Read read_scale(bool e4m3, std::uint8_t code) {
  if (e4m3) return read(oracle::layout("e4m3"), code % 128);
  return {.significand = 1, .quantum = code - 127, .exponent = code - 127, .nan = code == 255};
}

/// Toward zero; every zero is +0, and 2^128 and more are infinite.
inline std::uint32_t rounded(const Integer& value) {
  const Layout& f = oracle::layout("binary32");
  const Integer size = abs(value);
  const std::uint32_t sign = value < 0 ? 0x80000000 : 0;
  if (size >= in_units(1, 128)) return sign | 0x7F800000;
  std::uint64_t low = 0, high = f.after_last();
  while (high - low > 1) {
    const std::uint64_t middle = (low + high) / 2;
    const Dyadic x = oracle::magnitude(f, middle);
    (in_units(x.significand, x.quantum) <= size ? low : high) = middle;
  }
  return low == 0 ? 0 : sign | static_cast<std::uint32_t>(low);
}

/// What is added: a value, and its exponent if it takes part in the alignment.
struct Addend {
  Integer value = 0;
  std::optional<int> exponent;
};

class Judge {
 public:
  Judge(const Kind& kind, const Operand& a, const Operand& b) : kind_(kind), a_(a), b_(b) {}

  std::uint32_t step(std::size_t first, std::size_t end, std::uint32_t c) {
    plus_ = minus_ = nan_ = false;
    std::vector<Addend> addends = {c_of(c)};
    const auto group = static_cast<std::size_t>(kind_.group);
    for (std::size_t i = first; i < end; i += group) {
      addends.push_back(sum_of(i, std::min(i + group, end)));
    }
    if (nan_ || (plus_ && minus_)) return kNan;
    if (plus_ || minus_) return minus_ ? 0xFF800000 : 0x7F800000;
    int largest = kind_.floor;
    for (const Addend& one : addends) largest = std::max(largest, one.exponent.value_or(largest));
    const Integer grid = in_units(1, largest - kind_.fraction);
    Integer sum = 0;
    for (const Addend& one : addends) sum += one.value / grid;  // toward zero
    return rounded(sum * grid);
  }

 private:
  Addend c_of(std::uint32_t code) {
    const Read c = read(oracle::layout("binary32"), code);
    note(c.nan, c.infinite, c.negative);
    if (c.significand == 0) return {};
    return {in_units(c.significand, c.quantum), c.exponent};
  }

  Addend sum_of(std::size_t first, std::size_t end) {
    const auto block = first / static_cast<std::size_t>(kind_.block);
    const Read sa = read_scale(kind_.e4m3, a_.scales[block]);
    const Read sb = read_scale(kind_.e4m3, b_.scales[block]);
    note(sa.nan || sb.nan, false, false);
    Addend out;
    for (std::size_t i = first; i < end; ++i) {
      const Read x = read(oracle::layout(a_.format), a_.codes[i]);
      const Read y = read(oracle::layout(b_.format), b_.codes[i]);
      const bool special = x.nan || y.nan || x.infinite || y.infinite;
      const bool zero = (!x.infinite && x.significand == 0) || (!y.infinite && y.significand == 0);
      note(x.nan || y.nan || (special && zero), special, x.negative != y.negative);
      const Integer product = x.significand * y.significand * sa.significand * sb.significand;
      if (special || product == 0) continue;
      out.value += in_units(product, x.quantum + y.quantum + sa.quantum + sb.quantum);
      const int own = kind_.group == 1 ? x.exponent + y.exponent : 0;
      out.exponent = own + sa.exponent + sb.exponent;
    }
    return out;
  }

  void note(bool nan, bool infinite, bool negative) {
    nan_ = nan_ || nan;
    if (infinite) (negative ? minus_ : plus_) = true;
  }

  const Kind& kind_;
  const Operand &a_, &b_;
  bool plus_ = false, minus_ = false, nan_ = false;
};

inline std::uint32_t judged(const Kind& kind, const Operand& a, const Operand& b, std::uint32_t c) {
  const auto length = static_cast<std::size_t>(kind.length);
  for (std::size_t i = 0; i < a.codes.size(); i += length) {
    c = Judge(kind, a, b).step(i, std::min(i + length, a.codes.size()), c);
  }
  return c;
}

}  // namespace test_scaled_mma
