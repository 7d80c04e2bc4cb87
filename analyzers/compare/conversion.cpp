// SPDX-License-Identifier: Apache-2.0
#include "analyzers/compare/conversion.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <functional>
#include <utility>

#include "analyzers/compare/element_reader.hpp"

namespace halfscope::analyzers::compare {
namespace {

using Range = tbb::blocked_range<std::size_t>;
using Squares = std::pair<double, double>;

/// Adds the squares of finite pairs. The tree of additions depends on the size alone, so that the
/// sums have the same bits on any number of threads.
Squares squares_of(const StoredTensor& from, const StoredTensor& other) {
  const Reader x(from.view), y(other.view);
  const auto part = [&](const Range& range, Squares sum) {
    for (std::size_t i = range.begin(); i < range.end(); ++i) {
      const double is = x[i] / from.scale, becomes = y[i] / other.scale;
      if (!std::isfinite(is) || !std::isfinite(becomes)) continue;
      sum.first += is * is;
      sum.second += (becomes - is) * (becomes - is);
    }
    return sum;
  };
  return tbb::parallel_deterministic_reduce(
      Range(0, from.view.count, std::size_t{1} << 16), Squares(), part,
      [](const Squares& l, const Squares& r) {
        return Squares(l.first + r.first, l.second + r.second);
      });
}

using Lost = std::pair<std::uint64_t, std::uint64_t>;  ///< vanished and clipped blocks

/// Returns whether a block vanished and was clipped, as 0 or 1.
Lost lost_in(std::size_t block, const StoredTensor& own, const StoredTensor& other) {
  const Reader x(own.view), y(other.view);
  const float factor = std::abs(own.blocks->factors[block]);
  const double largest = own.blocks->largest * factor;
  const double limit = double{own.blocks->clipped_above} * factor / own.scale;
  bool any = false, other_any = false, clipped = false;
  own.blocks->for_each_element(block, [&](std::uint64_t, std::uint64_t i) {
    any |= x[i] != 0;
    other_any |= y[i] != 0;
    clipped |= largest != 0 && std::abs(x[i]) == largest && std::abs(y[i]) / other.scale > limit;
  });
  return {!any && other_any ? 1 : 0, clipped ? 1 : 0};
}

void add_blocks(std::optional<BlockLoss>& to, const StoredTensor& own, const StoredTensor& other) {
  if (!own.blocks) return;
  if (!to) to.emplace().layout = *own.blocks;
  to->layout.factors.clear();
  const auto part = [&](const Range& range, Lost sum) {
    for (std::size_t block = range.begin(); block < range.end(); ++block) {
      const Lost lost = lost_in(block, own, other);
      sum = {sum.first + lost.first, sum.second + lost.second};
    }
    return sum;
  };
  const Lost lost = tbb::parallel_reduce(
      Range(0, own.blocks->factors.size()), Lost(), part,
      [](const Lost& l, const Lost& r) { return Lost(l.first + r.first, l.second + r.second); });
  to->blocks += own.blocks->factors.size();
  to->vanished += lost.first;
  to->clipped += lost.second;
}

}  // namespace

void add_conversion(std::optional<Conversion>& to, const StoredTensor& a, const StoredTensor& b) {
  if (!a.blocks && !b.blocks) return;
  if (!to) to.emplace();
  const auto [signal, noise] = a.blocks && !b.blocks ? squares_of(b, a) : squares_of(a, b);
  to->signal += signal;
  to->noise += noise;
  add_blocks(to->a, a, b);
  add_blocks(to->b, b, a);
}

}  // namespace halfscope::analyzers::compare
