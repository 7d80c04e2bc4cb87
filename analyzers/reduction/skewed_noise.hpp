// SPDX-License-Identifier: Apache-2.0
// Noise whose shape goes with the mean: gradients of networks with ReLU are often zero, and else of
// one sign. Internal to reduction/.
#pragma once

#include "analyzers/reduction/addend_model.hpp"

namespace halfscope::analyzers::reduction {

/// Adds noise to `model`, which all elements share, where recorded values say that it is skewed
/// with a sign that goes with the mean (3 standard errors). Each element then draws from the values
/// of those whose mean in units of the scale has a similar size, with the sign of the mean. Values
/// are weighted so that their mean is the model's, not the recorded one. A recorded 0 is drawn as
/// 0. addends: those that `model` is of.
void skew_noise(Addends addends, AddendModel& model);

}  // namespace halfscope::analyzers::reduction
