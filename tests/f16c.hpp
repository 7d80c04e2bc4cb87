// SPDX-License-Identifier: Apache-2.0
// The CPU as a judge: x86's F16C converts binary32 to binary16 in four directions, with flags.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__)
#define HALFSCOPE_TEST_F16C 1
#include <immintrin.h>

#include <cstdint>

namespace f16c {

inline bool available() {
  return __builtin_cpu_supports("f16c") != 0 && __builtin_cpu_supports("avx2") != 0;
}

/// The rounding control field of MXCSR.
enum class Control : std::uint32_t { nearest = 0, down = 1, up = 2, zero = 3 };

struct Converted {
  std::uint16_t bits;
  bool invalid, overflow, underflow, inexact;
};

/// One conversion with the flags it raised. All exceptions are masked, the thread's own control
/// word is put back. MXCSR's flush bits do not reach VCVTPS2PH, denormals are inputs as they are.
__attribute__((target("f16c,avx"))) inline Converted convert(std::uint32_t bits, Control control) {
  constexpr std::uint32_t kAllMasked = 0x1F80;
  const std::uint32_t wanted = kAllMasked | static_cast<std::uint32_t>(control) << 13;
  std::uint32_t saved = 0;
  std::uint32_t raised = 0;
  const __m128i input = _mm_cvtsi32_si128(static_cast<int>(bits));
  __m128i output;
  asm volatile("vstmxcsr %1\n\tvldmxcsr %3\n\tvcvtps2ph $4, %4, %0\n\tvstmxcsr %2\n\tvldmxcsr %1"
               : "=&x"(output), "=&m"(saved), "=&m"(raised)
               : "m"(wanted), "x"(input));
  const int half = _mm_cvtsi128_si32(output) & 0xFFFF;
  return {static_cast<std::uint16_t>(half), (raised & 0x01) != 0, (raised & 0x08) != 0,
          (raised & 0x10) != 0, (raised & 0x20) != 0};
}

/// out: 8 binary16 encodings of the floats with the 8 patterns first, first + 1, ...
template <int kControl>
__attribute__((target("f16c,avx2"))) void convert_block(std::uint32_t first, std::uint16_t* out) {
  const __m256i step = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i bits = _mm256_add_epi32(_mm256_set1_epi32(static_cast<int>(first)), step);
  const __m128i half = _mm256_cvtps_ph(_mm256_castsi256_ps(bits), kControl);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), half);
}

}  // namespace f16c

#else
#define HALFSCOPE_TEST_F16C 0
#endif
