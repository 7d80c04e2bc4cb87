// SPDX-License-Identifier: Apache-2.0
// Compiled with -mavx2 -mfma -mf16c, so that Imath uses the processor's conversions.
#include "bench/imath_loops.hpp"

namespace imath_loops {

using Imath::half;

void convert(const float* in, half* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = half(in[i]);
}

void quantise(float* values, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) values[i] = half(values[i]);
}

void add(const half* a, const half* b, half* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = half(float(a[i]) + float(b[i]));
}

void multiply(const half* a, const half* b, half* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = half(float(a[i]) * float(b[i]));
}

void fma_rounded_twice(const half* a, const half* b, const half* c, half* out, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) out[i] = half(float(a[i]) * float(b[i]) + float(c[i]));
}

}  // namespace imath_loops
