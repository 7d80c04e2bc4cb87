// SPDX-License-Identifier: Apache-2.0
// The loops of f16c_loops.hpp with the half type of Imath (OpenEXR), as its users write them.
#pragma once

#include <Imath/half.h>

#include <cstddef>

namespace imath_loops {

void convert(const float* in, Imath::half* out, std::size_t n);
void quantise(float* values, std::size_t n);
void add(const Imath::half* a, const Imath::half* b, Imath::half* out, std::size_t n);
void multiply(const Imath::half* a, const Imath::half* b, Imath::half* out, std::size_t n);
void fma_rounded_twice(const Imath::half* a, const Imath::half* b, const Imath::half* c,
                       Imath::half* out, std::size_t n);

}  // namespace imath_loops
