// SPDX-License-Identifier: Apache-2.0
// Compares what the library returns with what the oracle decides: in every direction, under both
// tininess rules, with and without flushing and saturation, under every NaN policy.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "halfscope/number/modes.hpp"
#include "oracle_outcome.hpp"

namespace judge {

struct Direction {
  const char* name;
  halfscope::Rounding mode;
  oracle::Direction direction;
};

inline constexpr Direction kDirections[] = {
    {"ties_to_even", halfscope::Rounding::ties_to_even, oracle::Direction::ties_to_even},
    {"ties_to_away", halfscope::Rounding::ties_to_away, oracle::Direction::ties_to_away},
    {"toward_zero", halfscope::Rounding::toward_zero, oracle::Direction::toward_zero},
    {"upward", halfscope::Rounding::upward, oracle::Direction::upward},
    {"downward", halfscope::Rounding::downward, oracle::Direction::downward},
    {"to_odd", halfscope::Rounding::to_odd, oracle::Direction::to_odd},
};

/// The same modes in the library's words and in the oracle's. (denormals_are_zero is a matter of
/// the operands to the oracle.)
struct Modes {
  halfscope::Modes ours;
  oracle::Modes want;
};

inline std::string describe(const halfscope::Modes& m) {
  const char* name = "stochastic";
  for (const Direction& row : kDirections) {
    if (row.mode == m.rounding) name = row.name;
  }
  constexpr const char* kNan[] = {"x86", "canonical", "cuda"};
  return fmt::format("{} tininess {} nan {}{}{}{}{}", name,
                     m.tininess == halfscope::Tininess::after_rounding ? "after" : "before",
                     kNan[static_cast<int>(m.nan)],
                     !m.flush_to_zero                    ? ""
                     : m.flush == halfscope::Flush::tiny ? " ftz"
                                                         : " ftz of results",
                     m.denormals_are_zero ? " daz" : "", m.saturate ? " saturate" : "",
                     m.rounding == halfscope::Rounding::stochastic
                         ? fmt::format(" R {:#x} of {} bits", m.random, m.random_bits)
                         : "");
}

inline void set_tininess(Modes& m, bool before) {
  m.want.tiny_before = before;
  m.ours.tininess =
      before ? halfscope::Tininess::before_rounding : halfscope::Tininess::after_rounding;
}

/// Every direction, with both tininess rules, flushing or not, saturating or not.
inline std::vector<Modes> number_modes(bool with_flush) {
  std::vector<Modes> rows;
  for (const Direction& direction : kDirections) {
    for (int i = 0; i < (with_flush ? 8 : 4); ++i) {
      Modes m;
      m.ours.rounding = direction.mode;
      m.want.rule = direction.direction;
      set_tininess(m, i % 2 != 0);
      m.ours.saturate = m.want.saturate = i / 2 % 2 != 0;
      m.ours.flush_to_zero = m.want.flush = i / 4 != 0;
      rows.push_back(m);
    }
  }
  return rows;
}

/// Every direction and NaN policy.
inline std::vector<Modes> nan_modes() {
  constexpr std::array kPolicies = {
      std::pair(halfscope::NanPolicy::x86, oracle::NanRule::x86),
      std::pair(halfscope::NanPolicy::canonical, oracle::NanRule::canonical),
      std::pair(halfscope::NanPolicy::cuda, oracle::NanRule::cuda)};
  std::vector<Modes> rows;
  for (const Direction& direction : kDirections) {
    for (const auto& [ours, want] : kPolicies) {
      Modes m;
      m.ours.rounding = direction.mode;
      m.want.rule = direction.direction;
      m.ours.nan = ours;
      m.want.nan = want;
      rows.push_back(m);
    }
  }
  return rows;
}

inline const std::vector<Modes>& modes_for(const oracle::Outcome& outcome, bool with_flush) {
  static const std::vector<Modes> plain = number_modes(false);
  static const std::vector<Modes> flushing = number_modes(true);
  static const std::vector<Modes> nans = nan_modes();
  if (outcome.is == oracle::Outcome::Is::nan) return nans;
  return with_flush ? flushing : plain;
}

/// Random numbers beside every threshold at which the outcome changes, for words of several
/// lengths.
inline std::vector<Modes> stochastic_modes(const oracle::Located& x) {
  std::vector<Modes> rows;
  for (const int bits : {32, 31, 16, 5, 1}) {
    const std::uint64_t largest = (std::uint64_t{1} << bits) - 1;
    std::vector<std::uint64_t> words = {0, largest};
    for (const std::uint64_t ceiling : {x.place.ceiling, x.unbounded.ceiling}) {
      const std::uint64_t at = ceiling >> (32 - bits);
      for (const std::uint64_t word : {at - 1, at, at + 1}) {
        if (word <= largest) words.push_back(word);
      }
    }
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    for (const std::uint64_t word : words) {
      const auto random = static_cast<std::uint32_t>(word);
      Modes m;
      m.ours.rounding = halfscope::Rounding::stochastic;
      m.ours.random = random;
      m.ours.random_bits = bits;
      m.want.rule = {oracle::Direction::stochastic, random, bits};
      set_tininess(m, rows.size() % 2 != 0);
      m.ours.flush_to_zero = m.want.flush = rows.size() % 3 == 0;
      rows.push_back(m);
    }
  }
  return rows;
}

inline bool same(const halfscope::Flags& got, const oracle::Flags& want) {
  return got.invalid == want.invalid && got.divide_by_zero == want.divide_by_zero &&
         got.overflow == want.overflow && got.underflow == want.underflow &&
         got.inexact == want.inexact;
}

inline bool same(const halfscope::Rounded& got, const oracle::Result& want) {
  return got.bits == want.bits && same(got.flags, want.flags);
}

/// Bits, and flags in TestFloat's letters.
template <typename R>
std::string describe_result(const R& r) {
  return fmt::format("{:#x} {}{}{}{}{}", r.bits, r.flags.invalid ? 'v' : '.',
                     r.flags.divide_by_zero ? 'i' : '.', r.flags.overflow ? 'o' : '.',
                     r.flags.underflow ? 'u' : '.', r.flags.inexact ? 'x' : '.');
}

inline std::string difference(const halfscope::Modes& modes, const halfscope::Rounded& got,
                              const oracle::Result& want) {
  return fmt::format("{}: found {}, expected {}", describe(modes), describe_result(got),
                     describe_result(want));
}

/// What is asked beside the directions.
struct Scope {
  bool daz = false;         ///< the operands were taken with subnormals as zeros
  bool flush = true;        ///< the operation rounds, so flush_to_zero applies
  bool stochastic = false;  ///< the outcome was located precisely
};

/// Empty when `call(modes)` is the outcome under each of the modes; otherwise the first difference.
template <typename Call>
std::string disagreement(const oracle::Layout& f, const oracle::Outcome& outcome, Scope scope,
                         const Call& call) {
  const auto first_wrong = [&](const std::vector<Modes>& rows) -> std::string {
    for (const Modes& row : rows) {
      halfscope::Modes modes = row.ours;
      modes.denormals_are_zero = scope.daz;
      const halfscope::Rounded got = call(modes);
      const oracle::Result want = oracle::finish(f, outcome, row.want);
      if (!same(got, want)) return difference(modes, got, want);
    }
    return {};
  };
  std::string wrong = first_wrong(modes_for(outcome, scope.flush));
  if (wrong.empty() && scope.stochastic && outcome.is == oracle::Outcome::Is::number) {
    wrong = first_wrong(stochastic_modes(outcome.located));
  }
  return wrong;
}

}  // namespace judge
