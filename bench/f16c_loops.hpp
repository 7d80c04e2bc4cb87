// SPDX-License-Identifier: Apache-2.0
// The loops one writes by hand for a processor with F16C: no flags, no choice of direction, NaNs as
// they come, and a fused_multiply_add that rounds twice. What bench_array measures itself against.
#pragma once

#include <cstddef>
#include <cstdint>

namespace f16c_loops {

void convert(const float* in, std::uint16_t* out, std::size_t n);
void quantise(float* values, std::size_t n);
void add(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out, std::size_t n);
void multiply(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out, std::size_t n);
void fma_rounded_twice(const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* c,
                       std::uint16_t* out, std::size_t n);

}  // namespace f16c_loops
