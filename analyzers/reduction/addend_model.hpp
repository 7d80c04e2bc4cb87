// SPDX-License-Identifier: Apache-2.0
// A model of gradients over ranks: each element has a mean of its own, a noise scale of its own,
// and noise of a shape that all share. Estimated from the recorded ranks, with the noise of
// estimating taken out (docs/numerics/reductions.md, prediction).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace halfscope::analyzers::reduction {

using Addends = std::span<const std::span<const float>>;

/// How far the true means are from the recorded ones' centre: the estimate, and its ends.
enum class Spread { low, middle, high };

/// An element as the model has it: a mean and a scale, by which standard noise is multiplied.
struct ModelElement {
  double mean[3];  ///< by Spread
  double scale;
  double unit = 0;        ///< by it recorded values are multiplied, to be noise's
  std::size_t index = 0;  ///< of the recorded element
  std::size_t noise = 0;  ///< where in `noise` its own begins
};

/// As noise: the addend is 0.
inline constexpr float kZeroAddend = std::numeric_limits<float>::quiet_NaN();

struct AddendModel {
  std::vector<ModelElement> elements;  ///< by recorded scale, ascending; constants come first
  std::vector<float> noise;            ///< standard noise to draw from: first what all share
  std::size_t shared = 0;              ///< so many of it
  /// Noise that goes with the mean: each element has so much of its own. It is multiplied by the
  /// scale with the sign of the mean. 0: elements share the noise.
  std::size_t drawn = 0;
  double zero_share = 0;  ///< elements that are 0 on every rank, not in `elements`
  bool noise_alone = false;
};

/// addends: at least 4 ranks of n elements. Of more than 2^21 elements every k-th is used. Elements
/// with a value that is not finite are left out.
AddendModel model_addends(Addends addends);

}  // namespace halfscope::analyzers::reduction
