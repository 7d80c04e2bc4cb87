// SPDX-License-Identifier: Apache-2.0
// The distribution of true values behind observed ones, when the distribution of the noise is
// known.
#pragma once

#include <span>
#include <vector>

namespace halfscope::analyzers::reduction {

/// One draw of the noise: a true value x is observed as x * factor + error.
struct NoiseDraw {
  double error = 0, factor = 1;
};

/// observed: ascending. variance: of the true values, as known otherwise. Returns values of that
/// variance and of the observed mean, ascending, one for each observed one: the quantiles of the
/// distribution that Richardson's and Lucy's iteration (1972, 1974: maximum likelihood by EM) makes
/// of the observed one, started from the observed values shrunk to the variance.
std::vector<double> deconvolve(std::span<const double> observed, std::span<const NoiseDraw> noise,
                               double variance);

}  // namespace halfscope::analyzers::reduction
