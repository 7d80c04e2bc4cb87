// SPDX-License-Identifier: Apache-2.0
// The emulator on arrays, near the speed of memory where the processor can: element by element the
// results of the scalar functions, bit for bit, with all modes and NaN policies.
#pragma once

#include <cstdint>
#include <span>

#include "halfscope/number/format.hpp"
#include "halfscope/number/modes.hpp"

namespace halfscope {

struct ArrayOptions {
  Modes modes = {};
  /// Stochastic rounding: element i draws its R from (seed, first_index + i), number/random.hpp;
  /// modes.random is not used.
  std::uint64_t seed = 0;
  std::uint64_t first_index = 0;
  int threads =
      0;  ///< 0: as many as there are cores. Results and flags are the same for any number
};

// Each function returns the or of the flags of all elements. Each throws std::invalid_argument that
// names the two lengths when they differ, or the format when its encodings do not fit the storage:
// 9 to 16 bits in 16, at most 8 bits in 8; and when stochastic rounding is asked with random_bits
// outside 1 to 32. The floating-point environment of the caller does not
// matter and is left as it was. Output must not overlap input, but may be an input itself.

/// Binary32 to format `to`, each element rounded once.
Flags convert(Format to, std::span<const float> in, std::span<std::uint16_t> out,
              const ArrayOptions& options = {});
Flags convert(Format to, std::span<const float> in, std::span<std::uint8_t> out,
              const ArrayOptions& options = {});

/// Format `from` to binary32.
Flags convert(Format from, std::span<const std::uint16_t> in, std::span<float> out,
              const ArrayOptions& options = {});
Flags convert(Format from, std::span<const std::uint8_t> in, std::span<float> out,
              const ArrayOptions& options = {});

/// In place: binary32 to format f and back (element.hpp). f: any format whose values are all
/// binary32's, tf32 among them; others throw std::invalid_argument.
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
