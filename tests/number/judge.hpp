// SPDX-License-Identifier: Apache-2.0
// Compares what the library returns with what the oracle decides, in every direction and under both
// tininess rules.
#pragma once

#include <fmt/format.h>

#include <string>

#include "halfscope/number/convert.hpp"
#include "oracle.hpp"

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

inline bool same(const halfscope::Rounded& got, const oracle::Answer& want, bool underflow) {
  const halfscope::Flags flags = {
      .overflow = want.overflow, .underflow = underflow, .inexact = want.inexact};
  return got.bits == want.bits && got.flags == flags;
}

inline std::string describe(const halfscope::Rounded& r) {
  return fmt::format("{:#x} invalid {} overflow {} underflow {} inexact {}", r.bits,
                     r.flags.invalid, r.flags.overflow, r.flags.underflow, r.flags.inexact);
}

/// Empty when `rounded(mode, tininess)` is right in every direction for a magnitude located in f;
/// otherwise what was found and what was wanted.
template <typename Function>
std::string disagreement(const oracle::Layout& f, const oracle::Located& located, bool negative,
                         Function rounded) {
  using halfscope::Tininess;
  for (const Direction& row : kDirections) {
    const oracle::Answer want = oracle::decide(f, located, negative, row.direction);
    for (const Tininess tininess : {Tininess::after_rounding, Tininess::before_rounding}) {
      const bool after = tininess == Tininess::after_rounding;
      const bool underflow = after ? want.underflow_after : want.underflow_before;
      const halfscope::Rounded got = rounded(row.mode, tininess);
      if (same(got, want, underflow)) continue;
      return fmt::format(
          "{} {} tininess {}: found {}, want {:#x} overflow {} underflow {} inexact {}", f.name,
          row.name, after ? "after" : "before", describe(got), want.bits, want.overflow, underflow,
          want.inexact);
    }
  }
  return {};
}

}  // namespace judge
