// SPDX-License-Identifier: Apache-2.0
// What Adam's state loses where it is held in 16 bits: eps, and second moments.
//
// The second moment starts at 0 and becomes v = beta2 v + (1 - beta2) g^2 (Kingma and Ba 2015,
// algorithm 1). Rounded to a format after each step, it stays 0 as long as no (1 - beta2) g^2 is
// more than half the format's smallest number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::updates {

struct AdamState {
  std::string log;
  Dtype held_in = Dtype::f16;
  bool assumed_format = false;  ///< the state is not recorded: it has its weights' format
  double eps = 0, beta2 = 0;
  bool assumed_settings = false;  ///< the log does not say: PyTorch's defaults
  bool eps_is_zero = false;       ///< in the format: an update divides by the root of v alone

  /// Of recorded second moments, over the recorded steps. `lost` are 0 although the first moment is
  /// not, so that a gradient was there.
  Interval zero, lost, moments;
  std::string most_lost;  ///< the tensor with most of these, by share
  /// Weights of this state that hold NaN or infinities from broken_from on, where these are the
  /// log's first outside skipped steps and the weights were finite before: an optimizer step wrote
  /// them. Empty unless eps_is_zero.
  std::vector<std::string> broken;
  std::int64_t broken_from = 0;
  /// Whether some update surely did: m / (0 + 0), or NaN came from no other tensor.
  bool divides_by_zero() const {
    return eps_is_zero && !assumed_settings && (lost.low > 0 || !broken.empty());
  }

  /// Of the weights' recorded gradients: those of which (1 - beta2) g^2 is 0 in the format, and
  /// those of which g^2 is.
  Interval adds_nothing, square_is_zero, gradients;
  double adds_nothing_to = 0, square_is_zero_to = 0;  ///< the magnitudes up to which that is so
};

/// Of logs whose Adam state is in 16 bits, as recorded, or as its weights are.
std::vector<AdamState> adam_states(const underflow::Analysis& analysis);

}  // namespace halfscope::analyzers::updates
