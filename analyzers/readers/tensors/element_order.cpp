// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/element_order.hpp"

#include <algorithm>
#include <cstring>

namespace halfscope::analyzers::readers::tensors {
namespace {

struct Axis {
  std::uint64_t extent;
  std::size_t stride;  ///< in elements
};

/// Returns the axes with more than one element; the others do not affect the order.
std::vector<Axis> axes_of(const ElementOrder& order) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < order.shape.size(); ++i) {
    if (order.shape[i] > 1) {
      axes.push_back({order.shape[i], static_cast<std::size_t>(order.strides[i])});
    }
  }
  return axes;
}

std::size_t count_of(std::span<const std::uint64_t> shape) {
  std::size_t count = 1;
  for (const std::uint64_t extent : shape) count *= static_cast<std::size_t>(extent);
  return count;
}

/// Calls `take(from)` for each element in C order. `from` is its offset, in elements.
template <typename Take>
void walk(const std::vector<Axis>& axes, std::size_t count, const Take& take) {
  std::vector<std::uint64_t> index(axes.size(), 0);
  std::size_t from = 0;
  for (std::size_t i = 0; i < count; ++i) {
    take(from);
    for (std::size_t axis = axes.size(); axis-- > 0;) {  // the last axis changes fastest
      from += axes[axis].stride;
      if (++index[axis] < axes[axis].extent) break;
      from -= axes[axis].stride * static_cast<std::size_t>(axes[axis].extent);
      index[axis] = 0;
    }
  }
}

}  // namespace

std::vector<std::uint64_t> strides_of(std::span<const std::uint64_t> shape,
                                      bool first_axis_fastest) {
  std::vector<std::uint64_t> strides(shape.size());
  std::uint64_t stride = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t axis = first_axis_fastest ? i : shape.size() - 1 - i;
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

bool is_contiguous(const ElementOrder& order) {
  std::uint64_t wanted = 1;
  for (std::size_t axis = order.shape.size(); axis-- > 0;) {
    if (order.shape[axis] == 0) return true;
    if (order.shape[axis] > 1 && order.strides[axis] != wanted) return false;
    wanted *= order.shape[axis];
  }
  return true;
}

std::vector<std::byte> gathered(const ElementOrder& order, const std::byte* data) {
  const std::size_t count = count_of(order.shape), width = order.width;
  std::vector<std::byte> ours(count * width);
  if (is_contiguous(order)) {
    std::copy_n(data, ours.size(), ours.data());
  } else {
    std::byte* to = ours.data();
    walk(axes_of(order), count, [&](std::size_t from) {
      std::memcpy(to, data + from * width, width);
      to += width;
    });
  }
  if (order.big_endian) {
    for (std::size_t i = 0; i < count; ++i) {
      std::reverse(ours.data() + i * width, ours.data() + (i + 1) * width);
    }
  }
  return ours;
}

}  // namespace halfscope::analyzers::readers::tensors
