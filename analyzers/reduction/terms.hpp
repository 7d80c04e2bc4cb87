// SPDX-License-Identifier: Apache-2.0
// Addends of sums, as stored in a log's whole tensors: local gradients as addends of sums over
// ranks and over microbatches. Internal to reduction/.
#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/reduction/reductions.hpp"

namespace halfscope::analyzers::reduction {

/// Indices of sums with a finite addend beyond binary32's range: they overflow in every format.
using BeyondBinary32 = std::set<std::size_t>;

/// Fewer sums are computed one by one; the loops over results are efficient for many.
inline constexpr std::size_t kFewSums = 16;

/// Counts `beyond` sums as overflows; their addends beyond binary32's range are infinite now.
void add_beyond(std::size_t beyond, std::size_t addends, Facts& facts);

/// Returns the addends in binary32; too large ones become infinite. `addends` has one addend of
/// each sum after another. Adds the sums with such an addend to `beyond`.
std::vector<float> to_binary32(std::span<const double> addends, std::size_t sums,
                               BeyondBinary32& beyond);

/// Addends of the elements [first, first + sums()) of `of`; valid during a call.
struct Terms {
  std::string name;  ///< name of the tensor
  Sum sum = Sum::gradient;
  Over over = Over::ranks;
  std::span<const float> values = {};  ///< [addend][sum]
  std::size_t addends = 1;             ///< number of addends of each sum
  std::size_t first = 0, of = 0;
  std::size_t beyond = 0;  ///< sums with an addend beyond binary32's range, which is infinite here

  std::size_t sums() const { return values.size() / addends; }
  /// Returns addend `a` of each sum.
  std::span<const float> addend(std::size_t a) const { return values.subspan(a * sums(), sums()); }
};
using TakeTerms = std::function<void(const Terms&)>;

/// Calls `take` with the ranks' tensors of one step, in parts of 2^18 elements. A rank's addend is
/// the sum of its microbatches, rounded to binary32 once. A tensor is summed over the ranks that
/// have it. Returns the tensors whose shapes differ between ranks: they are not summed over ranks.
std::set<std::string> take_gradients(std::span<const frames::WholeStep> ranks,
                                     const frames::Selection& selection,
                                     std::span<const Over> asked, const TakeTerms& take);

}  // namespace halfscope::analyzers::reduction
