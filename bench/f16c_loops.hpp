// SPDX-License-Identifier: Apache-2.0
// Hand-written loops for a processor with F16C, as a comparison for bench_array. They have no
// flags, no rounding modes and no NaN handling; fma_rounded_twice() rounds twice.
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
