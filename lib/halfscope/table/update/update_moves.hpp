// SPDX-License-Identifier: Apache-2.0
// Computes when repeated equal updates, or stochastically rounded updates, move a weight. Internal
// to table/. docs/numerics/counting.md, "What-ifs".
#pragma once

#include <cstdint>
#include <vector>

#include "halfscope/number/format.hpp"

namespace halfscope {

/// Position of the sum of a weight and an update between two neighbours of a format.
struct RandomMove {
  /// True if the sum is not a number of the format and one neighbour is the old weight. Then the
  /// distance from the old weight to the sum is `way` / 2^64 of the distance to the other
  /// neighbour, rounded down; `more`: not exactly. False: it always moves.
  bool by_chance;
  bool away_from_zero;  ///< the other neighbour has the larger magnitude
  std::uint64_t way;
  bool more;
};

/// w16: a finite encoding of f. u: a finite nonzero encoding of binary32.
RandomMove random_move(Format f, std::uint64_t w16, std::uint32_t u);

/// Returns how many values R of `bits` random bits move the weight. moves_above(): the magnitude
/// rounds up if the discarded fraction is above R / 2^bits (docs/numerics/emulator.md, section 9).
/// moves_truncated(): R is added below the last place, and the sum is truncated.
std::uint64_t moves_above(const RandomMove& move, int bits);
std::uint64_t moves_truncated(const RandomMove& move, int bits);

/// The addend of Kahan's sum at step N to a weight that has not moved yet, for every update of a
/// format. While w + y rounds to w, c = (w - w) - y = -y exactly, so the next y is RN(u + y): it
/// depends only on u, and never shrinks. The weight moves within N steps if and only if the N-th y
/// moves it.
class KahanReach {
 public:
  KahanReach(Format f, std::uint64_t steps);
  /// Returns the N-th y for update u16, an encoding of the format.
  std::uint64_t after_steps(std::uint64_t u16) const {
    return (u16 & format_.sign_mask()) | reach_[u16 & format_.magnitude_mask()];
  }

 private:
  Format format_;
  std::vector<std::uint16_t> reach_;  // by magnitude of u16
};

/// Returns the first n for which RN(m_n) differs from RN(m_0), where m_(n+1) = RN32(m_n + u); 0 if
/// there is none because RN32(m + u) = m before. m_0, RN(m_0) and u must be finite, u nonzero. The
/// processor must round to nearest and keep subnormals (FloatEnvironment).
std::uint64_t first_move(Format f, float master, float update);

}  // namespace halfscope
