// SPDX-License-Identifier: Apache-2.0
// Addends of sums, as a log's whole tensors hold them. Internal to reduction/.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analyzers/reduction/reductions.hpp"

namespace halfscope::analyzers::reduction {

/// Sums, by their place, with a finite addend that binary32 does not hold: they overflow in every
/// format that accumulates.
using BeyondBinary32 = std::set<std::size_t>;

/// Fewer sums take one chain each; the loops over results are for many.
inline constexpr std::size_t kFewSums = 16;

/// Counts `beyond` such sums, which have an infinite addend now, as sums that overflow.
void add_beyond(std::size_t beyond, std::size_t addends, Facts& facts);

/// As addends are taken, one of each sum after the other; what is too large becomes infinite.
std::vector<float> to_binary32(std::span<const double> addends, std::size_t sums,
                               BeyondBinary32& beyond);

/// Addends of the elements [first, first + n) of `of`; they are valid during a call.
struct Terms {
  std::string name;  ///< of the tensor
  Sum sum = Sum::gradient;
  Over over = Over::ranks;
  std::span<const float> values = {};  ///< [addend][sum]
  std::size_t addends = 1;             ///< of each sum
  std::size_t first = 0, of = 0;
  std::size_t beyond = 0;  ///< sums that overflow in every format; an addend of theirs is infinite

  std::size_t sums() const { return values.size() / addends; }
  /// Addend `a` of each sum.
  std::span<const float> addend(std::size_t a) const { return values.subspan(a * sums(), sums()); }
};
using TakeTerms = std::function<void(const Terms&)>;

}  // namespace halfscope::analyzers::reduction
