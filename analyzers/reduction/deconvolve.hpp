// SPDX-License-Identifier: Apache-2.0
// Estimates the distribution of true values from observed ones and the noise's distribution.
#pragma once

#include <span>
#include <vector>

namespace halfscope::analyzers::reduction {

/// One draw of the noise: a true value x is observed as x * factor + error.
struct NoiseDraw {
  double error = 0, factor = 1;
};

/// Returns estimated true values, ascending, one per value of `observed` (ascending), with its mean
/// and with `variance`, the known variance of the true values. They are the quantiles of the
/// distribution that the iteration of Richardson and Lucy (1972, 1974: maximum likelihood by EM)
/// makes of the observed one, started from the observed values shrunk to the variance.
std::vector<double> deconvolve(std::span<const double> observed, std::span<const NoiseDraw> noise,
                               double variance);

}  // namespace halfscope::analyzers::reduction
