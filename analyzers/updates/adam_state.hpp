// SPDX-License-Identifier: Apache-2.0
// Losses in Adam's state that is held in 16 bits: eps, and second moments.
//
// The second moment starts at 0 and becomes v = beta2 v + (1 - beta2) g^2 (Kingma and Ba 2015,
// algorithm 1). If it is rounded to a format after each step, it stays 0 until (1 - beta2) g^2
// exceeds half the format's smallest number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::updates {

struct AdamState {
  std::string log;
  Dtype held_in = Dtype::f16;
  bool assumed_format = false;  ///< the state is not recorded; its weights' format is assumed
  double eps = 0, beta2 = 0;
  bool assumed_settings = false;  ///< the log has no settings; PyTorch's defaults are assumed
  bool eps_is_zero = false;       ///< eps is 0 in the format, so updates divide by sqrt(v) alone

  /// Counts of recorded second moments over the recorded steps. `lost`: they are 0 although the
  /// first moment is not, so that there was a gradient.
  Interval zero, lost, moments;
  std::string most_lost;  ///< tensor with the largest lost share
  /// Weights of this state with NaN or infinities from step broken_from on, if these are the log's
  /// first outside skipped steps and the weights were finite before: an optimizer step wrote them.
  /// Empty unless eps_is_zero.
  std::vector<std::string> broken;
  std::int64_t broken_from = 0;
  /// Returns true if an update surely divided by 0: m / (0 + 0), or NaN came from no other tensor.
  bool divides_by_zero() const {
    return eps_is_zero && !assumed_settings && (lost.low > 0 || !broken.empty());
  }

  /// Counts of the weights' recorded gradients: `adds_nothing` if (1 - beta2) g^2 is 0 in the
  /// format, `square_is_zero` if g^2 is.
  Interval adds_nothing, square_is_zero, gradients;
  double adds_nothing_to = 0, square_is_zero_to = 0;  ///< the largest such |g|
};

/// Returns the states of logs whose Adam state has 16 bits: as recorded, else as its weights have.
std::vector<AdamState> adam_states(const underflow::Analysis& analysis);

}  // namespace halfscope::analyzers::updates
