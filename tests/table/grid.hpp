// SPDX-License-Identifier: Apache-2.0
// Magnitudes as points of one line, so that "the one before" and bisection are integer arithmetic.
#pragma once

#include <cstdint>

#include "halfscope/table/boundary.hpp"
#include "oracle.hpp"

namespace grid {

__extension__ using Point = __int128;  // exponent * 2^52 + fraction: ascends with the magnitude

inline Point point(const halfscope::Magnitude& m) {
  return static_cast<Point>(m.exponent) * static_cast<Point>(halfscope::kFractionUnit) +
         static_cast<Point>(m.fraction);
}

inline halfscope::Magnitude magnitude(Point p) {
  const Point unit = static_cast<Point>(halfscope::kFractionUnit);
  const Point fraction = ((p % unit) + unit) % unit;
  return {static_cast<int>((p - fraction) / unit), static_cast<std::uint64_t>(fraction)};
}

inline oracle::Rational value(Point p) {
  const halfscope::Magnitude m = magnitude(p);
  return oracle::rational({halfscope::kFractionUnit + m.fraction, m.exponent - 52});
}

/// The first point whose value, times `scale`, is of the class or of a higher one: by bisection,
/// the oracle's rounding being monotone.
inline Point first_of(const oracle::Layout& f, oracle::Class wanted,
                      const oracle::Rational& scale) {
  Point below = point({-4000, 0});  // farther out than any quotient of two binary64 scales
  Point at = point({4000, 0});
  while (at - below > 1) {
    const Point middle = below + (at - below) / 2;
    (oracle::class_of(f, value(middle) * scale) >= wanted ? at : below) = middle;
  }
  return at;
}

/// Is p the first of its class? Holds for one point only.
inline bool is_first(const oracle::Layout& f, oracle::Class wanted, Point p,
                     const oracle::Rational& scale) {
  return oracle::class_of(f, value(p) * scale) >= wanted &&
         oracle::class_of(f, value(p - 1) * scale) < wanted;
}

}  // namespace grid
