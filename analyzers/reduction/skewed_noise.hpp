// SPDX-License-Identifier: Apache-2.0
// Noise whose shape depends on the mean: gradients of networks with ReLU are often zero, and
// otherwise of one sign. Internal to reduction/.
#pragma once

#include "analyzers/reduction/addend_model.hpp"

namespace halfscope::analyzers::reduction {

/// Adds noise to `model`, whose elements share their noise so far, if the recorded values have a
/// skewness with the sign of the mean (by 3 standard errors). Each element then draws from the
/// values of elements whose mean, in units of the scale, has a similar size, with the sign of the
/// mean. The values are weighted so that their mean is the model's, not the recorded one. A
/// recorded 0 is drawn as 0. addends: the addends from which `model` was estimated.
void skew_noise(Addends addends, AddendModel& model);

}  // namespace halfscope::analyzers::reduction
