// SPDX-License-Identifier: Apache-2.0
// What the array tests share: all modes and hard inputs.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "halfscope/array/array.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/number/random.hpp"
#include "tests/number/samples.hpp"
#include "tests/vector_target.hpp"

namespace arrays {

using namespace halfscope;

constexpr Rounding kRoundings[] = {
    Rounding::ties_to_even, Rounding::ties_to_away, Rounding::toward_zero, Rounding::upward,
    Rounding::downward,     Rounding::to_odd,       Rounding::stochastic,
};
constexpr NanPolicy kPolicies[] = {NanPolicy::x86, NanPolicy::canonical, NanPolicy::cuda};

/// Debug builds, and those under sanitizers, look at one input in so many: 11 has no factor in
/// common with the number of any mode's values.
#ifdef NDEBUG
constexpr int kOneIn = 1;
#else
constexpr int kOneIn = 11;
#endif

/// Every combination, 336 of them, or one in kOneIn.
inline std::vector<Modes> all_modes() {
  std::vector<Modes> all;
  for (const Rounding rounding : kRoundings) {
    for (const NanPolicy nan : kPolicies) {
      for (unsigned bits = 0; bits < 16; ++bits) {
        all.push_back(
            {.rounding = rounding,
             .tininess = (bits & 1) != 0 ? Tininess::before_rounding : Tininess::after_rounding,
             .nan = nan,
             .denormals_are_zero = (bits & 2) != 0,
             .flush_to_zero = (bits & 4) != 0,
             .flush = nan == NanPolicy::canonical ? Flush::subnormal : Flush::tiny,
             .saturate = (bits & 8) != 0,
             .random_bits = bits % 2 == 0 ? 32 : 3 + static_cast<int>(bits)});
      }
    }
  }
  std::vector<Modes> some;
  for (std::size_t i = 0; i < all.size(); i += kOneIn) some.push_back(all[i]);
  return some;
}

/// Those that F16C serves.
inline std::vector<Modes> f16c_modes() {
  std::vector<Modes> all;
  for (const Rounding rounding :
       {Rounding::ties_to_even, Rounding::toward_zero, Rounding::upward, Rounding::downward}) {
    for (const NanPolicy nan : kPolicies) all.push_back({.rounding = rounding, .nan = nan});
  }
  return all;
}

inline std::string text(const Modes& m) {
  return fmt::format("rounding {} tininess {} nan {} daz {} ftz {} {} saturate {} random bits {}",
                     static_cast<int>(m.rounding), static_cast<int>(m.tininess),
                     static_cast<int>(m.nan), m.denormals_are_zero, m.flush_to_zero,
                     static_cast<int>(m.flush), m.saturate, m.random_bits);
}

inline std::string text(const Flags& f) {
  return fmt::format("{}{}{}{}{}", f.invalid ? "V" : "-", f.divide_by_zero ? "Z" : "-",
                     f.overflow ? "O" : "-", f.underflow ? "U" : "-", f.inexact ? "X" : "-");
}

/// What the options say of element i, from the definition in array.hpp.
inline Modes modes_of(const ArrayOptions& options, std::size_t i) {
  Modes m = options.modes;
  if (m.rounding == Rounding::stochastic) {
    m.random = random_word(options.seed, options.first_index + i) >> (32 - m.random_bits);
  }
  return m;
}

/// Values hard to round to f, of either sign, zeros, infinities, NaNs of every sort, subnormals.
inline std::vector<float> hard_floats(Format f) {
  std::vector<std::uint64_t> bits;
  for (const std::uint64_t x : samples::encodings(kBinary32, f)) bits.push_back(x);
  for (const std::uint64_t x :
       {0x0u, 0x1u, 0x2u, 0x7FFFFFu, 0x800000u, 0x800001u, 0x7F7FFFFFu, 0x7F800000u, 0x7F800001u,
        0x7F801FFFu, 0x7F802000u, 0x7FBFFFFFu, 0x7FC00000u, 0x7FC00001u, 0x7FFFFFFFu}) {
    bits.push_back(x);
  }
  std::mt19937 random(3);
  for (int i = 0; i < 2000; ++i) bits.push_back(random() & 0x7FFFFFFF);
  std::vector<float> values;
  for (const std::uint64_t x : bits) {
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(x)));
    values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(x | 0x80000000)));
  }
  return values;
}

/// Encodings at the ends of a 16-bit format's classes, of either sign, NaNs among them.
inline std::vector<std::uint16_t> hard_encodings(Format f) {
  const auto one = static_cast<std::uint64_t>(f.emax) << f.fraction_bits();
  const std::uint64_t ends[] = {0, f.fraction_mask() + 1, one, f.largest_finite() + 1};
  std::vector<std::uint16_t> all;
  for (const std::uint64_t end : ends) {
    for (const std::uint64_t x : {end - 2, end - 1, end, end + 1, end + 2}) {
      all.push_back(static_cast<std::uint16_t>(x & f.magnitude_mask()));
    }
  }
  all.push_back(static_cast<std::uint16_t>(f.quiet_nan()));
  all.push_back(static_cast<std::uint16_t>(f.quiet_nan() + 3));
  all.push_back(static_cast<std::uint16_t>(f.largest_finite() / 2));
  const std::size_t half = all.size();
  for (std::size_t i = 0; i < half; ++i) {
    all.push_back(static_cast<std::uint16_t>(all[i] ^ f.sign_mask()));
  }
  return all;
}

}  // namespace arrays
