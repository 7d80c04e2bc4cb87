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
  /// Of these steps so many at most if magnitudes went neither up nor down: of n and one more the
  /// last is the largest with probability 1 / (n + 1).
  double by_chance = 0;

  Interval lost() const { return clipped + flushed; }
};

struct AmaxHistory {
  std::string log;
  std::uint64_t tensors = 0;   ///< recorded at each step from their first to their last
  std::uint64_t steps = 0;     ///< of tensors, without those that no magnitude precedes
  std::uint64_t left_out = 0;  ///< steps of tensors with infinities or NaN, which no format cures
  Interval values;             ///< finite and nonzero, at these steps
  std::vector<HistoryChoice> choices;  ///< by length, ascending; the last has the default length
  HistoryChoice
      with_margin;  ///< the default length at margin=1: clipped by more than a factor of 2

  const HistoryChoice& at_default() const { return choices.back(); }
  /// The length that loses fewest values, where the default surely loses so many more that it
  /// matters (kKeepLimit); else null.
  const HistoryChoice* better() const;
  /// Whether largest magnitudes are clipped in many steps by more than a factor of 2, and more
  /// often than by chance: they grow faster than any history follows. A training that begins well
  /// has magnitudes that grow, too, but not so fast.
  bool clips() const;
};

/// Activations and weights in E4M3, gradients of activations, or else of weights, in E5M2: the
/// recipe's HYBRID. Of tensors of two dimensions or more, which matrix products take, with exact
/// largest magnitudes at every step.
std::vector<AmaxHistory> amax_histories(const underflow::Analysis& analysis);

}  // namespace halfscope::analyzers::formats
