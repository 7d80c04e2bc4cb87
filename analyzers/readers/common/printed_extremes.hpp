// SPDX-License-Identifier: Apache-2.0
// Extremes and norms that were printed of a tensor, and the magnitudes that follow from them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzers/readers/common/contradictions.hpp"
#include "analyzers/readers/common/text_lines.hpp"

namespace halfscope::analyzers::readers::common {

/// What is known of a tensor's magnitudes.
struct Magnitudes {
  Bounds largest;                          ///< infinities and NaN are themselves
  std::optional<double> smallest_nonzero;  ///< no nonzero value is smaller
};

/// The larger of two magnitudes; NaN where one is.
Bounds larger_magnitude(const Bounds& a, const Bounds& b);

struct PrintedExtremes {
  std::optional<Bounds> min, max, amax;  ///< of a pair of min and max both, or nothing follows
  std::optional<Bounds> norm;            ///< Euclidean: no value is larger
  double norm_error = 0;                 ///< the relative error that computing it may have
};

/// The number that was printed.
std::string text_of(const Bounds& printed);
/// "min=1, max=2"
std::string text_of(const PrintedExtremes& printed);

/// What min, max and amax say together; the norm only puts them in doubt. Where they cannot be true
/// together, by more than their digits' rounding, the kind goes to `wrong`, and what is returned
/// holds whichever of them is right; empty where nothing does.
std::optional<Magnitudes> magnitudes_of(const PrintedExtremes& printed,
                                        std::vector<const Contradiction*>& wrong);

}  // namespace halfscope::analyzers::readers::common
