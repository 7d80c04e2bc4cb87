// SPDX-License-Identifier: Apache-2.0
// A pool of pinned memory. Allocating and freeing pinned memory waits for the whole device, so code
// that runs at every training step reuses it from here.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "halfscope/device/runtime.hpp"

namespace halfscope::cuda {

/// Pinned memory of at least `bytes` bytes, returned to the pool by the destructor. The owner must
/// first wait for all copies queued on it.
class PooledMemory {
 public:
  explicit PooledMemory(std::size_t bytes)
      : size_(std::bit_ceil(std::max<std::size_t>(bytes, kLeast))) {
    Pool& pool = shared_pool();
    const std::scoped_lock lock(pool.mutex);
    const auto found = pool.free.find(size_);
    if (found == pool.free.end()) {
      memory_ = std::make_unique<PinnedMemory>(size_);
    } else {
      memory_ = std::move(found->second);
      pool.free.erase(found);
    }
  }
  PooledMemory(const PooledMemory&) = delete;
  PooledMemory& operator=(const PooledMemory&) = delete;
  ~PooledMemory() {
    Pool& pool = shared_pool();
    const std::scoped_lock lock(pool.mutex);
    pool.free.emplace(size_, std::move(memory_));
  }

  template <class T>
  T* as() const {
    return memory_->as<T>();
  }

 private:
  static constexpr std::size_t kLeast = 4096;
  struct Pool {
    std::mutex mutex;
    std::multimap<std::size_t, std::unique_ptr<PinnedMemory>> free;
  };
  static Pool& shared_pool() {
    static Pool pool;
    return pool;
  }

  std::size_t size_;
  std::unique_ptr<PinnedMemory> memory_;
};

}  // namespace halfscope::cuda
