// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/tensors/element_order.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <vector>

namespace halfscope::analyzers::readers::tensors {
namespace {

using Axes = std::span<const std::uint64_t>;

/// Returns true if the elements are contiguous in C order. Axes of extent 1 may have any stride.
bool is_contiguous(Axes shape, Axes strides) {
  std::uint64_t wanted = 1;
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] > 1 && strides[axis] != wanted) return false;
    wanted *= shape[axis];
  }
  return true;
}

/// Calls `take(from)` for each element in C order. `from` is its offset, in elements.
template <typename Take>
void walk(Axes shape, Axes strides, std::size_t count, const Take& take) {
  std::vector<std::uint64_t> index(shape.size(), 0);
  std::uint64_t from = 0;
  for (std::size_t i = 0; i < count; ++i) {
    take(static_cast<std::size_t>(from));
    for (std::size_t axis = shape.size(); axis-- > 0;) {  // the last axis changes fastest
      from += strides[axis];
      if (++index[axis] < shape[axis]) break;
      from -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

}  // namespace

log::FileBytes in_c_order(log::FileBytes data, const log::NamedTensor& tensor, Axes strides,
                          bool big_endian) {
  const std::size_t count = tensor.view.count;
  const bool contiguous = is_contiguous(tensor.shape, strides);
  if (count == 0 || (contiguous && !big_endian)) return data;
  const std::size_t size = tensor.view.bytes(), width = size / count;
  const auto ours = std::make_shared_for_overwrite<std::byte[]>(size);
  if (contiguous) {
    std::copy_n(data.bytes.data(), size, ours.get());
  } else {
    std::byte* to = ours.get();
    walk(tensor.shape, strides, count, [&](std::size_t from) {
      std::memcpy(to, data.bytes.data() + from * width, width);
      to += width;
    });
  }
  for (std::size_t at = 0; big_endian && at < size; at += width) {
    std::reverse(ours.get() + at, ours.get() + at + width);
  }
  return {ours, {ours.get(), size}};
}

}  // namespace halfscope::analyzers::readers::tensors
