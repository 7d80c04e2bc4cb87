// SPDX-License-Identifier: Apache-2.0
// The processor's floating-point control word while a kernel runs. The caller's settings have no
// effect and are restored: rounding, flushing of subnormals, unmasked exceptions, flags raised
// before.
#pragma once

#include <cstdint>

#include "halfscope/number/modes.hpp"

#if defined(__FAST_MATH__)
#error "halfscope: -ffast-math would make the arrays' results wrong; compile with -fno-fast-math"
#endif

#if defined(__SSE__) || defined(__x86_64__)
#include <immintrin.h>
#define HALFSCOPE_HAS_MXCSR 1
#else
#define HALFSCOPE_HAS_MXCSR 0
#endif

namespace halfscope {

/// Status bits of MXCSR.
enum MxcsrFlag : unsigned {
  kMxcsrInvalid = 0x01,
  kMxcsrOverflow = 0x08,
  kMxcsrUnderflow = 0x10,
  kMxcsrInexact = 0x20
};

constexpr Flags flags_of_mxcsr(unsigned raised) {
  return {.invalid = (raised & kMxcsrInvalid) != 0,
          .overflow = (raised & kMxcsrOverflow) != 0,
          .underflow = (raised & kMxcsrUnderflow) != 0,
          .inexact = (raised & kMxcsrInexact) != 0};
}

constexpr unsigned mxcsr_bits(const Flags& flags) {
  return (flags.invalid ? kMxcsrInvalid : 0u) | (flags.overflow ? kMxcsrOverflow : 0u) |
         (flags.underflow ? kMxcsrUnderflow : 0u) | (flags.inexact ? kMxcsrInexact : 0u);
}

/// Flags of a vector kernel: `known` were computed by the kernel; `of_mxcsr` is a mask of the flags
/// that MXCSR reports correctly.
struct Raised {
  unsigned known;
  unsigned of_mxcsr;
};

/// Values of MXCSR's rounding control, also of the immediate operand of conversions.
enum class RoundingControl : std::uint8_t { nearest = 0, down = 1, up = 2, zero = 3 };

#if HALFSCOPE_HAS_MXCSR
/// During its lifetime sets for the calling thread: the given direction, all exceptions masked, no
/// flag raised, subnormals kept.
class FloatEnvironment {
 public:
  explicit FloatEnvironment(RoundingControl control) : saved_(_mm_getcsr()) {
    constexpr unsigned kAllMasked = 0x1F80;
    _mm_setcsr(kAllMasked | static_cast<unsigned>(control) << 13);
  }
  ~FloatEnvironment() { _mm_setcsr(saved_); }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

  Flags flags(const Raised& raised) const {
    return flags_of_mxcsr(raised.known | (raised.of_mxcsr & _mm_getcsr()));
  }

 private:
  unsigned saved_;
};
#elif defined(__aarch64__)
/// The same for aarch64: FPCR has the direction, FPSR the flags. NEON kernels compute flags with
/// integers.
class FloatEnvironment {
 public:
  explicit FloatEnvironment(RoundingControl control) {
    constexpr std::uint64_t kDirections[] = {0, 2, 1, 3};  // FPCR numbers upward before downward
    asm volatile("mrs %0, fpcr\n\tmrs %1, fpsr" : "=r"(control_), "=r"(status_));
    asm volatile("msr fpcr, %0" ::"r"(kDirections[static_cast<int>(control)] << 22) : "memory");
  }
  ~FloatEnvironment() {
    asm volatile("msr fpcr, %0\n\tmsr fpsr, %1" ::"r"(control_), "r"(status_) : "memory");
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

  Flags flags(const Raised& raised) const { return flags_of_mxcsr(raised.known); }

 private:
  std::uint64_t control_, status_;
};
#else
/// Other processors run the scalar code of the arrays, which uses integers only.
class FloatEnvironment {
 public:
  explicit FloatEnvironment(RoundingControl) {}
  Flags flags(const Raised& raised) const { return flags_of_mxcsr(raised.known); }
};
#endif

}  // namespace halfscope
