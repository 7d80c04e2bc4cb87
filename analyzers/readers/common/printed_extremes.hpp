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
  Bounds largest;                          ///< infinities and NaN are themselves
  std::optional<double> smallest_nonzero;  ///< no nonzero value is smaller
};

/// The larger of two magnitudes; NaN if one of them is.
Bounds larger_magnitude(const Bounds& a, const Bounds& b);

struct PrintedExtremes {
  std::optional<Bounds> min, max, amax;  ///< min and max are used only together
  std::optional<Bounds> norm;            ///< the Euclidean norm; no value is larger
  double norm_error = 0;                 ///< the relative error of its computation
};

/// The number that was printed.
std::string text_of(const Bounds& printed);
/// "min=1, max=2"
std::string text_of(const PrintedExtremes& printed);

/// The magnitudes that follow from min, max and amax; the norm is only compared with them. If they
/// contradict each other by more than rounding, the contradiction is added to `wrong` and the
/// result holds for each of them. Empty if nothing follows.
std::optional<Magnitudes> magnitudes_of(const PrintedExtremes& printed,
                                        std::vector<const Contradiction*>& wrong);

}  // namespace halfscope::analyzers::readers::common
