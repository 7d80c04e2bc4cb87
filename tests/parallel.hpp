// SPDX-License-Identifier: Apache-2.0
// Long sweeps on all cores. Catch2's assertions stay on the calling thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

/// Calls work(i) once for every i in [0, count), in any order, on every core.
template <typename Work>
void parallel_for(std::uint64_t count, Work work) {
  std::atomic<std::uint64_t> next = 0;
  std::vector<std::jthread> threads;
  const unsigned cores = std::max(1U, std::thread::hardware_concurrency());
  for (unsigned t = 0; t < cores; ++t) {
    threads.emplace_back([&] {
      for (std::uint64_t i = next++; i < count; i = next++) work(i);
    });
  }
}
