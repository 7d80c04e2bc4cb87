// SPDX-License-Identifier: Apache-2.0
// Compiled with -mavx2 -mfma -mf16c. An iteration processes four vectors: n is a multiple of 32.
#include "bench/f16c_loops.hpp"

#include <immintrin.h>

namespace f16c_loops {
namespace {

constexpr std::size_t kLanes = 8, kRound = 4 * kLanes;

inline __m256 load(const std::uint16_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline __m128i narrow(__m256 x) { return _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT); }
inline void store(std::uint16_t* p, __m256 x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow(x));
}

/// Calls one(k) for the vector that begins at element k.
template <class One>
inline void unrolled(std::size_t n, const One& one) {
  for (std::size_t i = 0; i < n; i += kRound) {
    one(i);
    one(i + kLanes);
    one(i + 2 * kLanes);
    one(i + 3 * kLanes);
  }
}

}  // namespace

void convert(const float* in, std::uint16_t* out, std::size_t n) {
  unrolled(n, [=](std::size_t k) { store(out + k, _mm256_loadu_ps(in + k)); });
}

void quantise(float* values, std::size_t n) {
  unrolled(n, [=](std::size_t k) {
    _mm256_storeu_ps(values + k, _mm256_cvtph_ps(narrow(_mm256_loadu_ps(values + k))));
  });
}

void add(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out, std::size_t n) {
  unrolled(n, [=](std::size_t k) { store(out + k, _mm256_add_ps(load(a + k), load(b + k))); });
}

void multiply(const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out, std::size_t n) {
  unrolled(n, [=](std::size_t k) { store(out + k, _mm256_mul_ps(load(a + k), load(b + k))); });
}

void fma_rounded_twice(const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* c,
                       std::uint16_t* out, std::size_t n) {
  unrolled(n, [=](std::size_t k) {
    store(out + k, _mm256_fmadd_ps(load(a + k), load(b + k), load(c + k)));
  });
}

}  // namespace f16c_loops
