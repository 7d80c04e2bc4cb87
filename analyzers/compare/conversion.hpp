// SPDX-License-Identifier: Apache-2.0
// What tensors lost that a run stores as codes with scales. Definitions: docs/compare.md.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>

#include "halfscope/log/tensor_blocks.hpp"
#include "halfscope/table/count/count.hpp"

namespace halfscope::analyzers::compare {

/// The blocks of a tensor in a run that stores it as codes, over the common steps.
struct BlockLoss {
  log::TensorBlocks layout = {};  ///< without factors
  std::uint64_t blocks = 0;
  std::uint64_t vanished = 0;  ///< all values zero, and some of the other run not
  std::uint64_t clipped = 0;   ///< some value is the block's largest, and the other run's beyond it
};

/// A tensor that at least one run stores as codes with scales.
struct Conversion {
  std::optional<BlockLoss> a = {}, b = {};
  /// Sums of squares, of the run's values that is not stored as codes (of A, if both are) and of
  /// the differences, over elements that are finite in both.
  double signal = 0, noise = 0;

  /// Returns 10 log10(signal / noise) in dB: infinite without noise, NaN if all values are zero.
  double signal_to_noise() const { return 10 * std::log10(signal / noise); }
};

/// A run's tensor: its values, their loss scale, and its blocks, null if it is not stored as codes.
struct StoredTensor {
  TensorView view;
  double scale = 1;
  std::shared_ptr<const log::TensorBlocks> blocks = nullptr;
};

/// Adds one step of a tensor, of one size in both runs, if a run stores it as codes.
void add_conversion(std::optional<Conversion>& to, const StoredTensor& a, const StoredTensor& b);

}  // namespace halfscope::analyzers::compare
