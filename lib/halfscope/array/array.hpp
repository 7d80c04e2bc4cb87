// SPDX-License-Identifier: Apache-2.0
// The emulator on arrays, near memory speed if the processor has the instructions: the results of
// the scalar functions for each element, bit for bit, with all modes and NaN policies.
#pragma once

#include <cstdint>
#include <span>

#include "halfscope/number/format.hpp"
#include "halfscope/number/modes.hpp"

namespace halfscope {

struct ArrayOptions {
  Modes modes = {};
  /// For stochastic rounding: element i draws its R from (seed, first_index + i), see
  /// number/random.hpp; modes.random is ignored.
  std::uint64_t seed = 0;
  std::uint64_t first_index = 0;
  int threads = 0;  ///< 0: one per core. Results and flags are the same for any number
};

// Each function returns the union of the flags of all elements. Each throws std::invalid_argument
// that names the two lengths if they differ, or the format if its encodings do not fit the storage:
// 9 to 16 bits in 16, at most 8 bits in 8; also for stochastic rounding with random_bits outside 1
// to 32. The caller's floating-point environment does not matter and is not changed. The output may
// be an input itself, but must not overlap one otherwise.

/// Converts binary32 to format `to`, each element rounded once.
Flags convert(Format to, std::span<const float> in, std::span<std::uint16_t> out,
              const ArrayOptions& options = {});
Flags convert(Format to, std::span<const float> in, std::span<std::uint8_t> out,
              const ArrayOptions& options = {});

/// Converts format `from` to binary32, exactly.
Flags convert(Format from, std::span<const std::uint16_t> in, std::span<float> out,
              const ArrayOptions& options = {});
Flags convert(Format from, std::span<const std::uint8_t> in, std::span<float> out,
              const ArrayOptions& options = {});

/// Rounds binary32 values to format f and converts them back, in place (element.hpp). f: any format
/// whose values binary32 can represent, including tf32; else throws std::invalid_argument.
Flags quantise(Format f, std::span<float> values, const ArrayOptions& options = {});

/// out[i] = a[i] + b[i], rounded once.
Flags add(Format f, std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
          std::span<std::uint16_t> out, const ArrayOptions& options = {});

/// out[i] = a[i] * b[i], rounded once.
Flags multiply(Format f, std::span<const std::uint16_t> a, std::span<const std::uint16_t> b,
               std::span<std::uint16_t> out, const ArrayOptions& options = {});

/// out[i] = a[i] * b[i] + c[i], rounded once.
Flags fused_multiply_add(Format f, std::span<const std::uint16_t> a,
                         std::span<const std::uint16_t> b, std::span<const std::uint16_t> c,
                         std::span<std::uint16_t> out, const ArrayOptions& options = {});

}  // namespace halfscope
