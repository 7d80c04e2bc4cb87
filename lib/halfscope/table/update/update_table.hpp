// SPDX-License-Identifier: Apache-2.0
// What happens to weights of a narrow format when updates are added to them: one pass over pairs,
// 64-bit counts. Definitions and their sources: docs/numerics/counting.md.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "halfscope/table/count/count.hpp"

namespace halfscope {

/// What became of the finite nonzero updates of finite weights, in one arithmetic.
struct UpdateOutcomes {
  std::uint64_t underflow = 0;  ///< the update itself rounds to zero
  std::uint64_t swamped = 0;    ///< it does not, but the sum is the old weight
  std::uint64_t applied = 0;    ///< the weight moves, by something else than the update
  std::uint64_t exact = 0;      ///< the weight moves by the update
  std::uint64_t overflow = 0;   ///< the sum is infinite

  std::uint64_t lost() const { return underflow + swamped; }
  UpdateOutcomes& operator+=(const UpdateOutcomes& other);
  friend bool operator==(const UpdateOutcomes&, const UpdateOutcomes&) = default;
};

struct UpdateCounts {
  std::uint64_t pairs = 0;
  std::uint64_t zero = 0;       ///< updates that are exactly zero: nothing to lose
  std::uint64_t nonfinite = 0;  ///< NaN or infinite update, or weight after rounding to the format
  /// `half`: RN(w16 + RN(u)). `fused`: RN(RN32(w16 + u32)), as an optimizer kernel that computes in
  /// binary32 and stores the narrow format. w16 is the weight rounded once to the format.
  UpdateOutcomes half, fused;
  std::uint64_t rule_2048 = 0;  ///< |w16| > 2^p |u|: 2048 for binary16. A rule of thumb

  std::uint64_t updates() const { return pairs - zero - nonfinite; }
  UpdateCounts& operator+=(const UpdateCounts& other);
  friend bool operator==(const UpdateCounts&, const UpdateCounts&) = default;
};

/// Finite nonzero updates in one cell of the table of binades.
struct UpdateCell {
  std::uint64_t count = 0;
  std::uint64_t lost = 0;  ///< of these: underflow or swamped, `half` arithmetic
  UpdateCell& operator+=(const UpdateCell& other);
  friend bool operator==(const UpdateCell&, const UpdateCell&) = default;
};

/// Mergeable in any order to the same bits.
struct UpdateTable {
  UpdateCounts counts;
  /// By (binade of w16, binade of u); a w16 of zero has the binade kZeroWeight.
  std::map<std::pair<int, int>, UpdateCell> cells;
  /// By floor(log2(|u| / |w16|)), exactly; zero weights are skipped.
  std::map<int, UpdateCell> ratios;
  /// Applied updates of `half` by floor(log2(relative error)); error |w_new - w16 - u| / |u|.
  std::map<int, std::uint64_t> errors;

  static constexpr int kZeroWeight = -100000;
  UpdateTable& operator+=(const UpdateTable& other);
  friend bool operator==(const UpdateTable&, const UpdateTable&) = default;
};

struct UpdateOptions {
  Format format = kBinary16;  ///< of weights: precision at most 11, width 16 (binary16, bfloat16)
  bool distributions = true;  ///< cells, ratios and errors too, not the counts alone
  int threads = 0;            ///< 0 takes all the machine has; results are the same for any number
};

// Elements are binary64, binary32, binary16 or bfloat16; both tensors have the same count, else
// std::invalid_argument. Weights are rounded once to the format. SIMD for binary32 pairs.

/// u is the recorded update: w_next = w + u.
UpdateTable count_updates(const TensorView& weights, const TensorView& updates,
                          const UpdateOptions& options = {});

/// Plain SGD: u = -lr * g / scale. `half` rounds the exact product of RN32(lr) and the unscaled
/// gradient once; `fused` has u32 = -RN32(RN32(lr) * RN32(g / scale)). The unscaled gradient g /
/// scale is exact where scale is a power of two and g no wider than binary32, else RN32(g / scale).
/// Throws std::invalid_argument unless lr is finite in binary32 and scale positive and finite.
UpdateTable count_sgd_updates(const TensorView& weights, const TensorView& gradients, double lr,
                              double scale, const UpdateOptions& options = {});

/// u = after - before, in binary64. Zero differences are counted as `zero`; whether there was an
/// update that got lost cannot be told.
UpdateTable count_differences(const TensorView& before, const TensorView& after,
                              const UpdateOptions& options = {});

}  // namespace halfscope
