// SPDX-License-Identifier: Apache-2.0
// Access to elements for the passes over pairs, on any number of threads. Internal to table/.
#pragma once

#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_arena.h>

#include <cstring>

#include "halfscope/table/count/count.hpp"

namespace halfscope {

inline std::uint64_t element(const TensorView& t, std::size_t i) {
  const auto load = [&]<typename Bits>(Bits bits) {
    std::memcpy(&bits, t.data + i * sizeof bits, sizeof bits);
    return std::uint64_t{bits};
  };
  switch (format_of(t.dtype).width) {
    case 8: return load(std::uint8_t{});
    case 16: return load(std::uint16_t{});
    case 32: return load(std::uint32_t{});
    default: return load(std::uint64_t{});
  }
}

/// Throws std::invalid_argument if the passes do not support the tensors or the format.
void require_pairs(const TensorView& weights, const TensorView& other, Format weight_format);

/// Calls add(sum, first, end) for ranges that cover [0, count) once, each with its own Sum, and
/// returns the total of the sums, added by += in any order.
template <typename Sum, typename AddRange>
Sum reduce_pairs(std::size_t count, std::size_t grain, int threads, const AddRange& add_range) {
  if (threads == 1 || count < 2 * grain) {
    Sum sum;
    add_range(sum, std::size_t{0}, count);
    return sum;
  }
  using Range = tbb::blocked_range<std::size_t>;
  const auto add = [&](const Range& range, Sum sum) {
    add_range(sum, range.begin(), range.end());
    return sum;
  };
  const auto join = [](Sum a, const Sum& b) {
    a += b;
    return a;
  };
  tbb::task_arena arena(threads == 0 ? tbb::task_arena::automatic : threads);
  return arena.execute(
      [&] { return tbb::parallel_reduce(Range(0, count, grain), Sum{}, add, join); });
}

}  // namespace halfscope
