// SPDX-License-Identifier: Apache-2.0
// Results of adding updates to weights of a narrow format: one pass over pairs, 64-bit counts.
// Definitions and their sources: docs/numerics/counting.md.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "halfscope/table/count/count.hpp"

namespace halfscope {

/// Outcomes of the finite nonzero updates of finite weights, in one arithmetic.
struct UpdateOutcomes {
  std::uint64_t underflow = 0;  ///< the update itself rounds to zero
  std::uint64_t swamped = 0;    ///< not underflow, but the sum is the old weight
  std::uint64_t applied = 0;    ///< the weight changes, but not exactly by the update
  std::uint64_t exact = 0;      ///< the weight changes exactly by the update
  std::uint64_t overflow = 0;   ///< the sum is infinite

  std::uint64_t lost() const { return underflow + swamped; }
  UpdateOutcomes& operator+=(const UpdateOutcomes& other);
  friend bool operator==(const UpdateOutcomes&, const UpdateOutcomes&) = default;
};

struct UpdateCounts {
  std::uint64_t pairs = 0;
  std::uint64_t zero = 0;       ///< updates that are exactly zero
  std::uint64_t nonfinite = 0;  ///< NaN or infinite update, or weight after rounding to the format
  /// `half`: RN(w16 + RN(u)). `fused`: RN(RN32(w16 + u32)), as an optimizer kernel that computes in
  /// binary32 and stores the narrow format. w16 is the weight rounded once to the format.
  UpdateOutcomes half, fused;
  std::uint64_t rule_2048 = 0;  ///< |w16| > 2^p |u|, 2048 for binary16: a rule of thumb

  std::uint64_t updates() const { return pairs - zero - nonfinite; }
  UpdateCounts& operator+=(const UpdateCounts& other);
  friend bool operator==(const UpdateCounts&, const UpdateCounts&) = default;
};

/// Finite nonzero updates with one pair of binades, or one ratio.
struct UpdateCell {
  std::uint64_t count = 0;
  std::uint64_t lost = 0;  ///< updates with outcome underflow or swamped in `half`
  UpdateCell& operator+=(const UpdateCell& other);
  friend bool operator==(const UpdateCell&, const UpdateCell&) = default;
};

/// Counts of updates; merged in any order with the same bits.
struct UpdateTable {
  UpdateCounts counts;
  /// By (binade of w16, binade of u); a w16 of zero has the binade kZeroWeight.
  std::map<std::pair<int, int>, UpdateCell> cells;
  /// By floor(log2(|u| / |w16|)), exactly; zero weights are skipped.
  std::map<int, UpdateCell> ratios;
  /// Applied updates of `half` by floor(log2(relative error)), with error |w_new - w16 - u| / |u|.
  std::map<int, std::uint64_t> errors;

  static constexpr int kZeroWeight = -100000;
  UpdateTable& operator+=(const UpdateTable& other);
  friend bool operator==(const UpdateTable&, const UpdateTable&) = default;
};

struct UpdateOptions {
  Format format = kBinary16;  ///< format of the weights: binary16 or bfloat16
  bool distributions = true;  ///< also compute cells, ratios and errors
  int threads = 0;            ///< 0: one per core; results are the same for any number
};

// Elements are binary64, binary32, binary16 or bfloat16. Throws std::invalid_argument for other
// dtypes or if the tensors' counts differ. Weights are rounded once to the format.

/// u is the recorded update: w_next = w + u.
UpdateTable count_updates(const TensorView& weights, const TensorView& updates,
                          const UpdateOptions& options = {});

/// Plain SGD: u = -lr * g / scale. `half` rounds the exact product of RN32(lr) and the unscaled
/// gradient once; `fused` has u32 = -RN32(RN32(lr) * RN32(g / scale)). The unscaled gradient g /
/// scale is exact if scale is a power of two and g is not wider than binary32, else RN32(g /
/// scale). Throws std::invalid_argument unless lr is finite in binary32 and scale positive and
/// finite.
UpdateTable count_sgd_updates(const TensorView& weights, const TensorView& gradients, double lr,
                              double scale, const UpdateOptions& options = {});

/// u = after - before, in binary64. Zero differences are counted as `zero`, since they do not show
/// whether an update was lost.
UpdateTable count_differences(const TensorView& before, const TensorView& after,
                              const UpdateOptions& options = {});

}  // namespace halfscope
