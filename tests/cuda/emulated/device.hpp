// SPDX-License-Identifier: Apache-2.0
// The emulated device, as tests see it: CUDA's runtime functions and the kernels of our .cu files
// on the processor. What a device would let pass in silence (a write past an allocation's end, a
// second cudaFree, a leak) is a problem: tests take the problems and compare them with "", and a
// program that ends with problems nobody took prints them and exits with 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace halfscope::emulated {

/// The order in which the blocks of a grid and the threads of a block are begun and go on after a
/// barrier. A kernel that lacks a barrier is seldom right in both.
enum class Order : std::uint8_t { forward, backward };

/// At first what the environment variable HALFSCOPE_EMULATED_ORDER says: forward, or backward.
void set_order(Order order);

/// Deferred: what is queued on a stream runs when somebody waits for it, so a missing wait shows.
/// The null stream runs at once. At first what HALFSCOPE_EMULATED_STREAMS says: immediate, or
/// deferred.
void set_deferred(bool deferred);

/// How many kernels were started so far.
std::uint64_t launches();

/// Device and pinned memory that is allocated now.
std::size_t bytes_allocated();
/// Streams, events and handles that were created and not destroyed.
std::size_t objects_alive();

/// Whether [p, p + bytes) lies inside one live allocation of device memory.
bool on_device(const void* p, std::size_t bytes);

void report_problem(const std::string& problem);
/// Looks at all guard bytes, then returns the problems since the last call, one a line.
std::string take_problems();

}  // namespace halfscope::emulated
