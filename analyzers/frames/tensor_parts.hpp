// SPDX-License-Identifier: Apache-2.0
// A tensor part by part, on several threads, joined in order: the same result for any number.
#pragma once

#include <tbb/parallel_for.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "halfscope/device/arena.hpp"

namespace halfscope::analyzers::frames {

/// join(work(i)) for every part i in order. Holds few results at a time.
template <class Result, class Work, class Join>
void in_order(std::size_t parts, int threads, const Work& work, const Join& join) {
  constexpr std::size_t kBatch = 512, kFew = 16;
  if (threads == 1 || parts < kFew) {
    for (std::size_t i = 0; i < parts; ++i) join(work(i));
    return;
  }
  std::vector<Result> results(std::min(parts, kBatch));
  for (std::size_t first = 0; first < parts; first += kBatch) {
    const std::size_t count = std::min(kBatch, parts - first);
    in_arena(threads, [&] {
      tbb::parallel_for(std::size_t{0}, count,
                        [&](std::size_t i) { results[i] = work(first + i); });
    });
    for (std::size_t i = 0; i < count; ++i) join(results[i]);
  }
}

}  // namespace halfscope::analyzers::frames
