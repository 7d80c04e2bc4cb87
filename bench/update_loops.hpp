// SPDX-License-Identifier: Apache-2.0
// A hand-written loop for lost updates on a processor with F16C, as a comparison for bench_update.
#pragma once

#include <cstddef>
#include <cstdint>

namespace update_loops {

/// Returns the number of pairs with u != 0 whose sum in binary16 equals the weight. n must be a
/// multiple of 8.
std::uint64_t lost(const float* weights, const float* updates, std::size_t n);

}  // namespace update_loops
