// SPDX-License-Identifier: Apache-2.0
// Access to the values of a whole tensor, and computation of its parts on several threads; the
// result does not depend on their number.
#pragma once

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "halfscope/device/arena.hpp"
#include "halfscope/table/count/count.hpp"

namespace halfscope::analyzers::frames {

/// Returns elements [first, first + n) as binary64, which represents them exactly.
std::vector<double> elements(const TensorView& view, std::size_t first, std::size_t n);

/// Returns true if elements [first, first + n) have the same bytes as elements [other, other + n).
bool same_bytes(const TensorView& view, std::size_t first, std::size_t other, std::size_t n);

/// Calls join(work(i)) for every part i in order. If same(i) is true, part i equals part i - 1, and
/// the previous result is joined again. Keeps few results in memory at a time.
template <class Result, class Work, class Join, class Same>
void in_order(std::size_t parts, int threads, const Work& work, const Join& join,
              const Same& same) {
  constexpr std::size_t kBatch = 512, kFew = 16;
  const std::size_t batch = threads == 1 || parts < kFew ? 1 : std::min(parts, kBatch);
  std::vector<std::optional<Result>> results(batch);
  std::optional<Result> last;
  for (std::size_t first = 0; first < parts; first += batch) {
    const std::size_t count = std::min(batch, parts - first);
    const auto find = [&](std::size_t i) {
      const std::size_t part = first + i;
      results[i].reset();
      if (part == 0 || !same(part)) results[i] = work(part);
    };
    if (count == 1) {
      find(0);
    } else {
      in_arena(threads, [&] { tbb::parallel_for(std::size_t{0}, count, find); });
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (results[i]) last = std::move(results[i]);
      join(*last);
    }
  }
}

/// The same for parts that all differ.
template <class Result, class Work, class Join>
void in_order(std::size_t parts, int threads, const Work& work, const Join& join) {
  in_order<Result>(parts, threads, work, join, [](std::size_t) { return false; });
}

}  // namespace halfscope::analyzers::frames
