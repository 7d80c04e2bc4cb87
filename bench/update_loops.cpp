// SPDX-License-Identifier: Apache-2.0
// Compiled with -mavx2 -mfma -mf16c.
#include "bench/update_loops.hpp"

#include <immintrin.h>

#include <bit>

namespace update_loops {
namespace {

inline __m256 rounded(__m256 x) {
  return _mm256_cvtph_ps(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}

}  // namespace

std::uint64_t lost(const float* weights, const float* updates, std::size_t n) {
  std::uint64_t count = 0;
  for (std::size_t i = 0; i < n; i += 8) {
    const __m256 u = _mm256_loadu_ps(updates + i), w = rounded(_mm256_loadu_ps(weights + i));
    const __m256 sum = rounded(_mm256_add_ps(w, rounded(u)));
    const __m256 same = _mm256_and_ps(_mm256_cmp_ps(sum, w, _CMP_EQ_OQ),
                                      _mm256_cmp_ps(u, _mm256_setzero_ps(), _CMP_NEQ_OQ));
    count +=
        static_cast<std::uint64_t>(std::popcount(static_cast<unsigned>(_mm256_movemask_ps(same))));
  }
  return count;
}

}  // namespace update_loops
