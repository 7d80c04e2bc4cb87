// SPDX-License-Identifier: Apache-2.0
// Inputs with the structure of rounding: every place a significand can be cut, and beside each cut
// the tie, its neighbours and the carries. No random numbers.
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

}  // namespace samples
