// SPDX-License-Identifier: Apache-2.0
// When equal updates, or updates rounded at random, first move a weight. Internal to table/.
// docs/numerics/counting.md, "What-ifs".
#pragma once

#include <cstdint>
#include <vector>

#include "halfscope/number/format.hpp"

namespace halfscope {

/// The sum of a weight and an update between two neighbours of a format.
struct RandomMove {
  /// The sum is not a number of the format, and one neighbour is the old weight: the way from that
  /// one to the sum is `way` / 2^64 of the way to the other, rounded down; `more`: not exactly.
  /// Otherwise the weight moves whatever the random number is.
  bool by_chance;
  bool away_from_zero;  ///< the other neighbour is the one of larger magnitude
  std::uint64_t way;
  bool more;
};

/// w16: a finite encoding of f. u: a finite nonzero encoding of binary32.
RandomMove random_move(Format f, std::uint64_t w16, std::uint32_t u);

/// For how many R of `bits` random bits the magnitude rounds up if and only if the discarded
/// fraction is above R / 2^bits (docs/numerics/emulator.md, section 9) and the weight moves; and by
/// adding the random bits below the last place and truncating.
std::uint64_t moves_above(const RandomMove& move, int bits);
std::uint64_t moves_truncated(const RandomMove& move, int bits);

/// What Kahan's sum adds at step N to a weight that has not moved yet, for every update of a
/// format. As long as w + y rounds to w, c = (w - w) - y = -y exactly, so that the next y is RN(u +
/// y): it depends on u alone, and never shrinks. The weight has moved within N steps if and only if
/// it moves by the N-th y.
class KahanReach {
 public:
  KahanReach(Format f, std::uint64_t steps);
  /// The N-th y of update u16, an encoding of the format.
  std::uint64_t after_steps(std::uint64_t u16) const {
    return (u16 & format_.sign_mask()) | reach_[u16 & format_.magnitude_mask()];
  }

 private:
  Format format_;
  std::vector<std::uint16_t> reach_;  // by magnitude of u16
};

/// The first n for which RN(m_n) is not RN(m_0), where m_(n+1) = RN32(m_n + u); 0 where there is
/// none, since RN32(m + u) = m before. m_0 and u are finite, RN(m_0) too, and u is not zero. The
/// processor must round to nearest and keep subnormals (FloatEnvironment).
std::uint64_t first_move(Format f, float master, float update);

}  // namespace halfscope
