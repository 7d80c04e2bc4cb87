// SPDX-License-Identifier: Apache-2.0
// The training batches of a run, in order.
#pragma once

#include <cstdint>
#include <future>

#include "sim/data/data.hpp"

namespace halfscope::sim::data {

/// Returns batches. After a large one, the next is made on a thread of its own while the caller
/// computes: 64 images of 224 x 224 are 38 MB, for which a GPU would wait at every step.
class Batches {
 public:
  /// `data` must outlive this object. `size`: examples of a batch.
  Batches(const Data& data, std::int64_t size) : data_(data), size_(size) {}

  /// Returns batch `index`. Throws what Data::batch throws.
  Batch take(std::int64_t index) {
    constexpr std::size_t kLarge = std::size_t{1} << 20;  // values
    Batch taken =
        ahead_.valid() && ahead_index_ == index ? ahead_.get() : data_.batch(index, size_);
    if (taken.inputs.size() < kLarge) return taken;
    ahead_index_ = index + 1;
    constexpr auto kHow = std::launch::async | std::launch::deferred;  // deferred without threads
    ahead_ = std::async(
        kHow, [&data = data_, next = index + 1, size = size_] { return data.batch(next, size); });
    return taken;
  }

 private:
  const Data& data_;
  std::int64_t size_, ahead_index_ = 0;
  std::future<Batch> ahead_;  // declared last: its destructor waits for the thread
};

}  // namespace halfscope::sim::data
