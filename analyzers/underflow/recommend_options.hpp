// SPDX-License-Identifier: Apache-2.0
// What is asked of a loss scale.
#pragma once

namespace halfscope::analyzers::underflow {

struct RecommendOptions {
  int headroom_bits = 1;            ///< binades kept free below overflow
  double target_underflow = 0.001;  ///< share of finite nonzero values that may be flushed
};

/// Whether a scale is so small that what it holds are the gradients of a run that diverges, which
/// no scale cures: below 1 where the run ends in what no scale cures, and in any case below
/// 2^-24, binary16's least positive number: a loss times less would be lost itself.
constexpr bool too_small(int log2_scale, bool ends_broken) {
  constexpr int kLeastInHalf = -24;
  return log2_scale < (ends_broken ? 0 : kLeastInHalf);
}

}  // namespace halfscope::analyzers::underflow
