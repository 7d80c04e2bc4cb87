// SPDX-License-Identifier: Apache-2.0
// The loop one writes by hand for lost updates on a processor with F16C: one count, by the sum in
// binary16. What bench_update measures itself against.
#pragma once

#include <cstddef>
#include <cstdint>

namespace update_loops {

/// Pairs with u != 0 whose sum in binary16 is the weight. n: a multiple of 8.
std::uint64_t lost(const float* weights, const float* updates, std::size_t n);

}  // namespace update_loops
