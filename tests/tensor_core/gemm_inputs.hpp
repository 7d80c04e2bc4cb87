// SPDX-License-Identifier: Apache-2.0
// Operands of whole products, and which of their outputs are compared: functions of their place,
// like those of inputs.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "halfscope/number/random.hpp"
#include "tensor_core/inputs.hpp"

namespace probe {

/// D = A B, all of them row by row, as PyTorch has them: A (m, k), D (m, n), B (k, n) or, if
/// `transposed`, (n, k).
struct GemmShape {
  int m, n, k;
  bool transposed;

  friend bool operator==(const GemmShape&, const GemmShape&) = default;
};

enum class GemmInputs : std::uint8_t { near_one, many_exponents, cancelling, count };

/// Element k of row `line` of A (side 0) or of column `line` of B (side 1).
HALFSCOPE_HD constexpr std::uint16_t gemm_element(GemmInputs kind, int side, int line, int k,
                                                  int length) {
  const int mirrored = length - 1 - k;
  const int lower = k < mirrored ? k : mirrored;
  const bool paired =
      kind == GemmInputs::cancelling && mirrored != k &&
      halfscope::philox4x32({{static_cast<std::uint32_t>(lower), 0, 9, 0}}, 0x6E33, 1).words[0] %
              8 !=
          0;
  const int place = paired ? lower : k;
  const std::uint32_t word =
      halfscope::philox4x32({{static_cast<std::uint32_t>(line), static_cast<std::uint32_t>(place),
                              static_cast<std::uint32_t>(side), static_cast<std::uint32_t>(kind)}},
                            0x6E33, 1)
          .words[0];
  if (kind == GemmInputs::many_exponents) return detail::random_half(word, 1, 15);
  // What is left of the sum is small, so that binary16 shows what binary32 lost.
  const bool small = kind == GemmInputs::cancelling && !paired && side == 0;
  const std::uint16_t value = detail::random_half(word, small ? 5 : 12, 4);
  return paired && side == 0 && k != lower ? value ^ 0x8000 : value;
}

/// A whole row of A or column of B.
inline std::vector<std::uint16_t> gemm_line(GemmInputs kind, int side, int line, int length) {
  std::vector<std::uint16_t> out;
  for (int k = 0; k < length; ++k) out.push_back(gemm_element(kind, side, line, k, length));
  return out;
}

struct GemmOutput {
  int row, column;
};

/// Output i of those that are compared.
inline GemmOutput gemm_output(const GemmShape& shape, std::uint32_t i) {
  const halfscope::PhiloxBlock w = halfscope::philox4x32({{i, 0, 0, 0}}, 0x5A3F1E, 1);
  return {static_cast<int>(w.words[0] % static_cast<std::uint32_t>(shape.m)),
          static_cast<int>(w.words[1] % static_cast<std::uint32_t>(shape.n))};
}

}  // namespace probe
