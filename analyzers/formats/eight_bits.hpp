// SPDX-License-Identifier: Apache-2.0
// Replays FP8 with delayed scaling. Transformer Engine's scales follow the largest magnitudes of
// previous steps; this counts the values that they clip and flush, by the length of the history.
//
// Compares element formats for gradients in MXFP8's blocks. E4M3 has one more bit of significand,
// E5M2 has sixteen more binades of range, which a block's own scale mostly makes unnecessary.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::formats {

/// One length of the history, over all tensors that can be replayed.
struct HistoryChoice {
  std::int64_t length = 1;          ///< number of previous steps
  Interval clipped;                 ///< finite nonzero values beyond the format's largest number
  Interval flushed;                 ///< finite nonzero values that become zero
  std::uint64_t clipped_steps = 0;  ///< (tensor, step) pairs with a clipped largest magnitude
  std::string most_clipped;         ///< tensor with most of these pairs; empty: none
  /// Expected number of these pairs, at most, if magnitudes neither rose nor fell: the last of n +
  /// 1 is the largest with probability 1 / (n + 1).
  double by_chance = 0;

  Interval lost() const { return clipped + flushed; }
};

struct AmaxHistory {
  std::string log;
  std::uint64_t tensors = 0;   ///< number of tensors, each recorded at every step of its range
  std::uint64_t steps = 0;     ///< (tensor, step) pairs after the tensor's first magnitude
  std::uint64_t left_out = 0;  ///< (tensor, step) pairs with infinities or NaN; no format helps
  Interval values;             ///< finite nonzero values in `steps`
  std::vector<HistoryChoice> choices;  ///< by length, ascending; the last one is the default
  HistoryChoice with_margin;  ///< default length at margin=1: clipped by more than a factor of 2

  const HistoryChoice& at_default() const { return choices.back(); }
  /// Returns the length that loses the fewest values, if the default surely loses so many more that
  /// it matters (kKeepLimit); else null.
  const HistoryChoice* better() const;
  /// Returns true if largest magnitudes are clipped by more than a factor of 2 in many steps, and
  /// more often than by chance: they grow faster than any history can follow. In a run that begins
  /// well magnitudes also grow, but not so fast.
  bool clips() const;
};

/// Returns the histories of logs by the recipe's HYBRID: activations and weights in E4M3, gradients
/// of activations (else of weights) in E5M2. Uses tensors of two or more dimensions, the operands
/// of matrix products, whose largest magnitudes are exact at every step.
std::vector<AmaxHistory> amax_histories(const underflow::Analysis& analysis);

struct MxGradients {
  std::uint64_t tensors = 0;  ///< activation (else weight) gradients with noise in both formats
  std::uint64_t e4m3_better = 0, e5m2_better = 0;  ///< numbers of tensors, by signal-to-noise ratio
  double e4m3_db = 0, e5m2_db = 0;                 ///< medians over the tensors
  std::string most_for_e5m2;                       ///< tensor that gains most by E5M2; empty: none
  double gained_db = 0;                            ///< gain of that tensor
};

/// Returns the comparison; empty if no gradient's whole tensors were read for block formats.
std::optional<MxGradients> mx_gradients(const underflow::Analysis& analysis);

}  // namespace halfscope::analyzers::formats
