// SPDX-License-Identifier: Apache-2.0
// Estimates the distribution of true values from observed ones and the noise's distribution; and
// noise whose shape depends on the mean: gradients of networks with ReLU are often zero, and
// otherwise of one sign. Internal to reduction/.
#pragma once

#include <span>
#include <vector>

#include "analyzers/reduction/addend_model.hpp"

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

/// Adds noise to `model`, whose elements share their noise so far, if the recorded values have a
/// skewness with the sign of the mean (by 3 standard errors). Each element then draws from the
/// values of elements whose mean, in units of the scale, has a similar size, with the sign of the
/// mean. The values are weighted so that their mean is the model's, not the recorded one. A
/// recorded 0 is drawn as 0. addends: the addends from which `model` was estimated.
void skew_noise(Addends addends, AddendModel& model);

}  // namespace halfscope::analyzers::reduction
