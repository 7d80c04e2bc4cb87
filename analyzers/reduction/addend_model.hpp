// SPDX-License-Identifier: Apache-2.0
// A model of gradients over ranks: each element has its own mean and its own noise scale; the shape
// of the noise is common. It is estimated from the recorded ranks and corrected for the noise of
// estimation (docs/numerics/reductions.md, prediction).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace halfscope::analyzers::reduction {

using Addends = std::span<const std::span<const float>>;

/// The spread of the true means around the recorded means' centre: the estimate and its bounds.
enum class Spread { low, middle, high };

/// One element of the model. Its addend on a rank is mean + scale * standard noise.
struct ModelElement {
  double mean[3];  ///< indexed by Spread
  double scale;
  double unit = 0;        ///< factor that converts recorded values to standard noise
  std::size_t index = 0;  ///< index of the recorded element
  std::size_t noise = 0;  ///< index of its own first value in AddendModel::noise
};

/// A noise value that makes the addend 0.
inline constexpr float kZeroAddend = std::numeric_limits<float>::quiet_NaN();

struct AddendModel {
  std::vector<ModelElement> elements;  ///< ascending by recorded scale; constants come first
  std::vector<float> noise;            ///< standard noise to draw from; a common part comes first
  std::size_t shared = 0;              ///< number of common noise values
  /// Number of noise values of each element's own, if the noise's shape depends on the mean; they
  /// are multiplied by the scale with the mean's sign. 0: all elements share the noise.
  std::size_t drawn = 0;
  double zero_share = 0;  ///< share of elements that are 0 on every rank; not in `elements`
  bool noise_alone = false;
};

/// Returns the model. addends: at least 4 ranks of n elements each. If there are more than 2^21
/// elements, uses every k-th. Ignores elements with a value that is not finite.
AddendModel model_addends(Addends addends);

}  // namespace halfscope::analyzers::reduction
