// SPDX-License-Identifier: Apache-2.0
// What is asked of a loss scale, and which loss does harm.
#pragma once

namespace halfscope::analyzers::underflow {

struct RecommendOptions {
  int headroom_bits = 1;            ///< binades kept free below overflow
  double target_underflow = 0.001;  ///< share of finite nonzero values that may be flushed
  /// Of the gradients' sum of squares (L2): a loss below the first does no harm, from the second on
  /// it is serious. docs/stories.md has the training that supports them.
  double negligible_loss = 1e-5, serious_loss = 1e-3;
  /// Of one tensor's own sum of squares: from here on it is harmed, however little all lose. 20 dB.
  double harmed_tensor = 0.01;
  /// The same as the first two, of steps and of weight updates.
  double negligible_share = 0.001, serious_share = 0.05;
};

/// Whether gradients are as large as in a run that diverges, which no scale cures. highest_log2: of
/// the largest power of two that holds them. With the usual headroom, whatever was asked for, it is
/// below 1 where the run ends in what no scale cures, and in any case below 2^-24, binary16's least
/// positive number: a loss times less would be lost itself.
constexpr bool diverges(int highest_log2, bool ends_broken) {
  constexpr int kLeastInHalf = -24;
  return highest_log2 - RecommendOptions().headroom_bits < (ends_broken ? 0 : kLeastInHalf);
}

}  // namespace halfscope::analyzers::underflow
