// SPDX-License-Identifier: Apache-2.0
// Inputs with the structure of rounding: every place a significand can be cut, and beside each cut
// the tie, its neighbours and the carries; operands whose results are hard to round.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "halfscope/number/format.hpp"

namespace samples {

/// `bits` bits with the leading one set: the smallest, the largest, their neighbours, and mixed
/// ones.
inline std::vector<std::uint64_t> leading_parts(int bits) {
  if (bits <= 0) return {0};
  const std::uint64_t low = std::uint64_t{1} << (bits - 1);
  const std::uint64_t high = low + (low - 1);
  const std::uint64_t mixed = low | (0x5555555555555555 & (low - 1));
  std::vector<std::uint64_t> parts = {low, low | 1, mixed, high - (bits > 1 ? 1 : 0), high};
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  return parts;
}

/// Significands of `width` bits, leading one set, that a cut after `cut` leading bits finds hard:
/// the discarded part is zero, the least bit, just under a half, a half, just over it, all ones.
inline void append_cut(std::vector<std::uint64_t>& out, int width, int cut) {
  const int tail_bits = width - cut;
  if (cut < 0 || tail_bits < 1) return;
  const std::uint64_t half = std::uint64_t{1} << (tail_bits - 1);
  for (const std::uint64_t part : leading_parts(cut)) {
    const std::uint64_t kept = cut == 0 ? 0 : part << tail_bits;
    for (const std::uint64_t tail :
         {std::uint64_t{0}, std::uint64_t{1}, half - 1, half, half + 1, half + (half - 1)}) {
      const std::uint64_t significand = kept + tail;
      if (significand >> (width - 1) == 1) out.push_back(significand);
    }
  }
}

/// Significands of `width` bits for values in [2^e, 2^(e+1)) that format f rounds: cuts at the last
/// place kept and beside it, and at p bits, where tininess after rounding is decided.
inline std::vector<std::uint64_t> significands(halfscope::Format f, int e, int width) {
  const int lost = std::clamp(f.emin() - e, 0, f.precision + 1);
  const int kept = f.precision - lost;
  std::vector<std::uint64_t> out = {std::uint64_t{1} << (width - 1)};
  for (const int cut : {kept - 1, kept, kept + 1, f.precision - 1, f.precision, f.precision + 1}) {
    append_cut(out, width, cut);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// Positive encodings of `from`, every binade of it, that are hard to round to `to`.
inline std::vector<std::uint64_t> encodings(halfscope::Format from, halfscope::Format to) {
  std::vector<std::uint64_t> out;
  for (int e = from.min_quantum_exponent(); e <= from.emax; ++e) {
    // A binade far outside the target's range has one fate.
    const bool far = e < to.min_quantum_exponent() - 4 || e > to.emax + 3;
    const int where = far ? to.emax : e;
    for (const std::uint64_t significand : significands(to, where, from.precision)) {
      if (e < from.emin()) {
        out.push_back(significand >> (from.emin() - e));
      } else {
        const auto binade = static_cast<std::uint64_t>(e - from.emin());
        out.push_back((binade << from.fraction_bits()) + significand);
      }
      if (far && out.size() % 8 == 0) break;
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  out.erase(std::upper_bound(out.begin(), out.end(), from.largest_finite()), out.end());
  return out;
}

/// Fraction fields whose products, sums and quotients are hard: both ends, the middle, mixed bits.
inline std::vector<std::uint64_t> fractions(halfscope::Format f) {
  std::vector<std::uint64_t> out;
  const std::uint64_t all = f.fraction_mask();
  const std::uint64_t half = (all + 1) / 2;
  if (all < 8) {
    for (std::uint64_t i = 0; i <= all; ++i) out.push_back(i);
    return out;
  }
  return {0, 1, 2, 0x5555555555555555 & all, half - 1, half, half + 1, all - 1, all};
}

/// Exponent fields: all of them where they are few; otherwise both ends, the middle, and a
/// significand's length from each.
inline std::vector<std::uint64_t> exponent_fields(halfscope::Format f) {
  std::vector<std::uint64_t> out;
  const std::uint64_t last = (std::uint64_t{1} << f.exponent_bits()) - 1;
  if (last < 64) {
    for (std::uint64_t i = 0; i <= last; ++i) out.push_back(i);
    return out;
  }
  const auto p = static_cast<std::uint64_t>(f.precision);
  const std::uint64_t bias = last / 2;
  return {0,        1,        2,    p,        p + 1,    bias / 2,     bias - p - 1,
          bias - p, bias - 1, bias, bias + 1, bias + p, bias + p + 1, bias + bias / 2,
          last - 2, last - 1, last};
}

/// Encodings of both signs with these fields; zeros, infinities and NaNs are among them.
inline std::vector<std::uint64_t> structured(halfscope::Format f) {
  std::vector<std::uint64_t> out;
  for (const std::uint64_t field : exponent_fields(f)) {
    for (const std::uint64_t fraction : fractions(f)) {
      out.push_back((field << f.fraction_bits()) | fraction);
      out.push_back(out.back() | f.sign_mask());
    }
  }
  return out;
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): the same numbers on every machine.
inline std::uint64_t mixed(std::uint64_t index) {
  std::uint64_t z = (index + 1) * 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace samples
