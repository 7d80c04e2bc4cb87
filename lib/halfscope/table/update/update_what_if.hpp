// SPDX-License-Identifier: Apache-2.0
// Results of the same updates in other arithmetic. Separate from the one pass, and slower.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "halfscope/table/update/update_table.hpp"

namespace halfscope {

/// Stochastic rounding of the exact sum w16 + u, u finite and nonzero: the magnitude is rounded up
/// if and only if the discarded fraction is above R / 2^r, R uniform in [0, 2^r)
/// (docs/numerics/emulator.md, section 9).
struct StochasticMoves {
  int random_bits = 0;  ///< r
  /// Sum over updates of the number of R in [0, 2^random_bits) for which the weight moves: the
  /// expected number of moves times 2^random_bits, exactly. 128 bits as two words.
  std::uint64_t moves_low = 0, moves_high = 0;
  /// Updates that move the weight for no R: toward zero, by less than 2^-r of the last place.
  std::uint64_t never = 0;
  /// The same if R is added below the last place and the sum is truncated, as in hardware: the bits
  /// of the discarded fraction below r bits are lost. These updates are away from zero, by less
  /// than 2^-r of the last place.
  std::uint64_t never_truncated = 0;

  double expected_moves() const;
  StochasticMoves& operator+=(const StochasticMoves& other);
};

/// The same update N times in the format with Kahan's compensation (Kahan 1965; each operation
/// rounded to the format): u = RN(u), c = 0, then N times y = u - c; t = w + y; c = (t - w) - y; w
/// = t.
struct KahanMoves {
  std::uint64_t steps = 0;        ///< N
  std::uint64_t moved = 0;        ///< weights that differ after N updates
  std::uint64_t moved_plain = 0;  ///< weights that differ without compensation

  KahanMoves& operator+=(const KahanMoves& other);
};

struct UpdateWhatIf {
  UpdateCounts bfloat16;                      ///< weights and updates in bfloat16
  std::map<int, UpdateCounts> learning_rate;  ///< updates times 2^k, by k
  std::vector<StochasticMoves> stochastic;
  KahanMoves kahan;
  /// With a binary32 master weight that starts at the recorded weight: number of updates by
  /// floor(log2(n)), n being the number of equal updates after which the narrow copy first differs.
  std::map<int, std::uint64_t> first_move;
  std::uint64_t master_never = 0;  ///< the master weight stops before the copy changes

  /// Throws std::invalid_argument if the numbers of random bits or Kahan steps differ; a
  /// default-constructed object can be added to any.
  UpdateWhatIf& operator+=(const UpdateWhatIf& other);
};

struct WhatIfOptions {
  Format format = kBinary16;
  std::uint64_t kahan_steps = 1000;
  int first_log2_factor = -4, last_log2_factor = 4;  ///< factors of the learning rate
  std::vector<int> random_bits = {8, 10, 13, 16, 32};
  int threads = 0;
};

/// Same pairs as for count_updates(); updates wider than binary32 are rounded to binary32.
/// random_bits: 1 to 32. Factors: 2^-64 to 2^64. Throws std::invalid_argument otherwise.
UpdateWhatIf what_if(const TensorView& weights, const TensorView& updates,
                     const WhatIfOptions& options = {});

}  // namespace halfscope
