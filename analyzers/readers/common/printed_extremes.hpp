// SPDX-License-Identifier: Apache-2.0
// Printed extremes and norms of a tensor, and the magnitudes that follow from them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/common/text_lines.hpp"

namespace halfscope::analyzers::readers::common {

/// The bounds of a tensor's magnitudes.
struct Magnitudes {
  Bounds largest;                          ///< both bounds are inf or NaN if it is
  std::optional<double> smallest_nonzero;  ///< its lower bound; empty if unknown
};

/// Returns the larger of two magnitudes; NaN if one of them is NaN.
Bounds larger_magnitude(const Bounds& a, const Bounds& b);

/// The numbers that a log has for one tensor. Numbers that it lacks are empty.
struct PrintedExtremes {
  std::optional<Bounds> min, max, amax;  ///< min and max are used only together
  std::optional<Bounds> norm;            ///< the Euclidean norm
  double norm_error = 0;                 ///< the relative error of its computation
};

/// Returns the number that was printed, in six digits.
std::string text_of(const Bounds& printed);
/// Returns all numbers: "min=1, max=2".
std::string text_of(const PrintedExtremes& printed);

/// Returns the magnitudes that follow from min, max and amax; the norm is only compared with them.
/// If they differ by more than rounding, adds the contradiction to `wrong` and returns bounds that
/// fit its Contradiction::outcome. Empty if there is neither amax nor a usable min and max.
std::optional<Magnitudes> magnitudes_of(const PrintedExtremes& printed,
                                        std::vector<const Contradiction*>& wrong);

}  // namespace halfscope::analyzers::readers::common
