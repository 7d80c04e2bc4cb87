// SPDX-License-Identifier: Apache-2.0
// FP8 with delayed scaling, replayed: what Transformer Engine's scales, which follow the largest
// magnitudes of the steps before, clip and flush, by the length of their history.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::formats {

/// One length of the history, over all tensors that can be replayed.
struct HistoryChoice {
  std::int64_t length = 1;          ///< steps; 1: the step before
  Interval clipped;                 ///< finite nonzero values beyond the format's largest number
  Interval flushed;                 ///< that become zero
  std::uint64_t clipped_steps = 0;  ///< steps of tensors in which the largest magnitude is clipped
  std::string most_clipped;         ///< the tensor with most of these steps; empty if none
};

struct AmaxHistory {
  std::string log;
  std::uint64_t tensors = 0;  ///< recorded at every step of the log, two or more
  std::uint64_t steps = 0;    ///< of tensors, without each one's first, which no history precedes
  std::uint64_t values = 0;   ///< finite and nonzero, at these steps
  std::vector<HistoryChoice> choices;  ///< by length, ascending
};

/// Activations and weights in E4M3, gradients in E5M2: the recipe's HYBRID. Of logs with tensors
/// that are recorded step by step.
std::vector<AmaxHistory> amax_histories(const underflow::Analysis& analysis);

}  // namespace halfscope::analyzers::formats
