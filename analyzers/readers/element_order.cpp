// SPDX-License-Identifier: Apache-2.0
// Arrays in another byte order, or with the first axis fastest, as everything else reads them.
#include <algorithm>
#include <cstring>

#include "analyzers/readers/numpy_file.hpp"

namespace halfscope::readers {
namespace {

/// An axis of a file with the first axis fastest. Axes of one element have no say in the order.
struct Axis {
  std::uint64_t extent;
  std::size_t stride;  ///< in elements
};

std::vector<Axis> axes_of(const std::vector<std::uint64_t>& shape) {
  std::vector<Axis> axes;
  std::size_t stride = 1;
  for (const std::uint64_t extent : shape) {
    if (extent > 1) axes.push_back({extent, stride});
    stride *= static_cast<std::size_t>(extent);
  }
  return axes;
}

/// Calls `take(from)` with the place in the file of each element in C order.
template <typename Take>
void walk(const std::vector<std::uint64_t>& shape, std::size_t count, const Take& take) {
  const std::vector<Axis> axes = axes_of(shape);
  std::vector<std::uint64_t> index(axes.size(), 0);
  std::size_t from = 0;
  for (std::size_t i = 0; i < count; ++i) {
    take(from);
    for (std::size_t axis = axes.size(); axis-- > 0;) {  // the last axis counts up first
      from += axes[axis].stride;
      if (++index[axis] < axes[axis].extent) break;
      from -= axes[axis].stride * static_cast<std::size_t>(axes[axis].extent);
      index[axis] = 0;
    }
  }
}

}  // namespace

bool is_foreign(const NpyArray& array) {
  return (array.big_endian || array.first_axis_fastest) && array.count > 0;
}

std::vector<std::byte> in_our_order(const NpyArray& array, std::span<const std::byte> data) {
  const auto count = static_cast<std::size_t>(array.count);
  const std::size_t width = data.size() / count;
  std::vector<std::byte> ours(data.begin(), data.end());
  if (array.first_axis_fastest) {
    std::byte* to = ours.data();
    walk(array.shape, count, [&](std::size_t from) {
      std::memcpy(to, data.data() + from * width, width);
      to += width;
    });
  }
  if (array.big_endian) {
    for (std::size_t i = 0; i < count; ++i) {
      std::reverse(ours.data() + i * width, ours.data() + (i + 1) * width);
    }
  }
  return ours;
}

}  // namespace halfscope::readers
