// SPDX-License-Identifier: Apache-2.0
// Requirements for a loss scale, and limits from which a loss does harm.
#pragma once

namespace halfscope::analyzers::underflow {

struct RecommendOptions {
  int headroom_bits = 1;            ///< binades kept free below overflow
  double target_underflow = 0.001;  ///< share of finite nonzero values that may be flushed
  /// Shares of the gradients' sum of squares (L2): a loss below the first does no harm, from the
  /// second on it is serious. docs/stories.md has the training that supports them.
  double negligible_loss = 1e-5, serious_loss = 1e-3;
  /// Share of one tensor's sum of squares (20 dB) that harms it, however little all tensors lose.
  double harmed_tensor = 0.01;
  /// The same two limits as shares of steps and of weight updates.
  double negligible_share = 0.001, serious_share = 0.05;
};

/// Returns true if gradients are as large as in a run that diverges, which no scale cures.
/// `highest_log2`: log2 of the largest scale that avoids overflow. That scale, with the default
/// headroom, is then below 1 if the run ends broken; and in any case below 2^-24, binary16's
/// smallest positive number, since a loss multiplied by less would itself be flushed.
constexpr bool diverges(int highest_log2, bool ends_broken) {
  constexpr int kLeastInHalf = -24;
  return highest_log2 - RecommendOptions().headroom_bits < (ends_broken ? 0 : kLeastInHalf);
}

}  // namespace halfscope::analyzers::underflow
