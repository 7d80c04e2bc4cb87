// SPDX-License-Identifier: Apache-2.0
// The array operations by the scalar emulator, one element at a time: for processors without vector
// instructions, and for formats and modes that the vector kernels do not support.
#pragma once

#include <bit>

#include "halfscope/array/element.hpp"
#include "halfscope/array/job.hpp"
#include "halfscope/number/arithmetic.hpp"

namespace halfscope::scalar {

inline Modes modes_of(const ArrayOptions& options, std::size_t i) {
  return element::modes_at(options.modes, options.seed, options.first_index + i);
}

template <typename Bits>
Flags narrow(const NarrowingJob& job, const float* in, Bits* out, std::size_t first,
             std::size_t n) {
  Flags flags;
  for (std::size_t i = 0; i < n; ++i) {
    const Rounded r = from_float(job.format, in[i], modes_of(job.options, first + i));
    out[i] = static_cast<Bits>(r.bits);
    flags |= r.flags;
  }
  return flags;
}

inline Flags quantise(const NarrowingJob& job, float* values, std::size_t first, std::size_t n) {
  Flags flags;
  for (std::size_t i = 0; i < n; ++i) {
    const Rounded r = element::quantise(job.format, std::bit_cast<std::uint32_t>(values[i]),
                                        modes_of(job.options, first + i));
    values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(r.bits));
    flags |= r.flags;
  }
  return flags;
}

template <typename Bits>
Flags widen(const WideningJob& job, const Bits* in, float* out, std::size_t first, std::size_t n) {
  Flags flags;
  for (std::size_t i = 0; i < n; ++i) {
    const Rounded r = convert(kBinary32, job.format, in[i], modes_of(job.options, first + i));
    out[i] = std::bit_cast<float>(static_cast<std::uint32_t>(r.bits));
    flags |= r.flags;
  }
  return flags;
}

inline Rounded apply(ArrayOperation operation, Format f, std::uint64_t a, std::uint64_t b,
                     std::uint64_t c, const Modes& modes) {
  switch (operation) {
    case ArrayOperation::add: return add(f, a, b, modes);
    case ArrayOperation::multiply: return multiply(f, a, b, modes);
    case ArrayOperation::fused_multiply_add: break;
  }
  return fused_multiply_add(f, a, b, c, modes);
}

inline Flags compute(ArrayOperation operation, Format f, const ArrayOptions& options,
                     const std::uint16_t* a, const std::uint16_t* b, const std::uint16_t* c,
                     std::uint16_t* out, std::size_t first, std::size_t n) {
  Flags flags;
  for (std::size_t i = 0; i < n; ++i) {
    const Rounded r =
        apply(operation, f, a[i], b[i], c == nullptr ? 0 : c[i], modes_of(options, first + i));
    out[i] = static_cast<std::uint16_t>(r.bits);
    flags |= r.flags;
  }
  return flags;
}

}  // namespace halfscope::scalar
