// SPDX-License-Identifier: Apache-2.0
// The threads of a block on one thread of the processor. They run one after another on the same
// fiber; only where one is held, at a barrier or a warp's operation, the next goes on on another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <string>

namespace halfscope::emulated {

/// threadIdx and the like: one dimension.
struct Index {
  unsigned x = 0;
};

constexpr unsigned kWarp = 32;

/// Runs thread() for every thread of every block, with the built-in variables set. Throws
/// std::runtime_error that names kernel, block and source lines where threads wait for each other
/// in vain, and what a thread throws.
void run_grid(const std::string& name, const std::function<void()>& thread, unsigned blocks,
              unsigned threads, std::size_t shared);

/// Where the calling thread waits, for errors; the operation is a string literal.
struct Place {
  const char* operation = "";
  std::source_location where;
};

/// Returns when all threads of the block that have not ended are here.
void block_barrier(const Place& place);

/// Returns when all 32 lanes are here: what each of them gave.
const std::uint64_t* warp_gather(std::uint64_t mine, unsigned mask, const Place& place);

void* dynamic_shared_memory();

}  // namespace halfscope::emulated

// What CUDA calls built-in variables; of the thread that runs now.
inline halfscope::emulated::Index threadIdx, blockIdx, blockDim, gridDim;
