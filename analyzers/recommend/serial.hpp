// SPDX-License-Identifier: Apache-2.0
// How much less a series with serial correlation says than as many independent values.
#pragma once

#include <cstddef>
#include <span>

namespace halfscope::analyzers::recommend {

/// How many times fewer independent values "at or above `from`" are worth: 1 + 2 sum of its
/// autocorrelations, up to the first that is not positive. 1 where none is, or all are.
double inflation_from(std::span<const double> residuals, double from);

/// Variance and memory of residuals of a straight line, as of a first-order autoregression.
struct Autoregression {
  double correlation = 0;  ///< of neighbours, in [0, 0.97]
  double deviation = 0;    ///< of one value
  double longer = 1;       ///< standard errors are this many times those of independent values
};
Autoregression autoregression(std::span<const double> residuals);

}  // namespace halfscope::analyzers::recommend
