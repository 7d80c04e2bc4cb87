// SPDX-License-Identifier: Apache-2.0
// A list of tensors as work for one launch. Blocks of threads share the parts of all tensors; each
// takes a run of neighbouring parts. Only DeviceTensor is public.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "halfscope/device/memory.hpp"
#include "halfscope/table/count/count.hpp"

namespace halfscope::cuda {

/// A tensor in memory that the current device can access, at any alignment of its elements: f16,
/// bf16 or f32. Reads are fastest if `data` is a multiple of 16 bytes.
struct DeviceTensor {
  Dtype dtype = Dtype::f32;
  const void* data = nullptr;
  std::int64_t count = 0;
};

/// Throws std::invalid_argument that names the tensor if its dtype is not f16, bf16 or f32, the
/// count is negative, or elements have a null pointer.
void require_device_tensor(const DeviceTensor& tensor, const char* who);

/// Bytes of an element of f16, bf16 or f32.
HALFSCOPE_HD constexpr std::size_t width_of(Dtype dtype) { return dtype == Dtype::f32 ? 4 : 2; }

/// A piece of a tensor with so few elements that 32-bit counts suffice. Its parts begin at
/// multiples of the launch's part length, so that the order of floating-point sums depends on
/// neither the device nor the other tensors.
struct Slice {
  static constexpr std::int64_t kMost = std::int64_t{1} << 31;

  const void* data;
  unsigned count;
  unsigned first_part;  ///< number of its first part in the launch
  Dtype dtype;
};

/// Calls visit(slice) for each slice of `most` elements of a tensor.
template <class Visit>
void for_each_slice(const DeviceTensor& tensor, std::int64_t most, const Visit& visit) {
  const auto* const data = static_cast<const std::byte*>(tensor.data);
  for (std::int64_t first = 0; first < tensor.count; first += most) {
    const auto count = static_cast<unsigned>(std::min(most, tensor.count - first));
    visit(Slice{data + width_of(tensor.dtype) * static_cast<std::size_t>(first), count, 0,
                tensor.dtype});
  }
}

/// The work of a launch, as kernels receive it. Item: Slice, or a struct with its count and
/// first_part. The arrays lie in pinned memory.
template <class Item>
struct Work {
  const Item* items;       ///< each with at least one element
  const unsigned* starts;  ///< for each block, the item of its first part
  unsigned parts, part_elements;
};

/// Returns the number of parts of `count` elements.
HALFSCOPE_HD constexpr unsigned parts_of(unsigned count, unsigned part_elements) {
  return static_cast<unsigned>((std::uint64_t{count} + part_elements - 1) / part_elements);
}

/// Collects the items of a launch.
template <class Item>
class WorkList {
 public:
  explicit WorkList(unsigned part_elements) : part_elements_(part_elements) {}

  /// Adds an item with at least one element. Sets its first_part.
  void add(Item item) {
    item.first_part = parts_;
    items_.push_back(item);
    parts_ += parts_of(item.count, part_elements_);
  }

  const std::vector<Item>& items() const { return items_; }
  unsigned parts() const { return parts_; }
  unsigned blocks(unsigned most) const { return std::min(parts_, most); }

  /// Writes the work for a launch of blocks(most) blocks.
  Work<Item> write(ChunkedMemory& pinned, unsigned most) const {
    auto* const items = pinned.take<Item>(items_.size());
    std::copy(items_.begin(), items_.end(), items);
    auto* const starts = pinned.take<unsigned>(blocks(most));
    std::size_t at = 0;
    for (std::uint64_t block = 0; block < blocks(most); ++block) {
      const std::uint64_t part = block * parts_ / blocks(most);
      while (at + 1 < items_.size() && items_[at + 1].first_part <= part) ++at;
      starts[block] = static_cast<unsigned>(at);
    }
    return {items, starts, parts_, part_elements_};
  }

 private:
  unsigned part_elements_, parts_ = 0;
  std::vector<Item> items_;
};

}  // namespace halfscope::cuda
