// SPDX-License-Identifier: Apache-2.0
// Products of encodings, output by output with chain(), as gemm() should give them.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "halfscope/tensor_core/gemm.hpp"

namespace halfscope::test {

/// Encodings of A (m x k, row by row), B (n x k: column by column) and C (m x n, of the
/// accumulator's format).
struct GemmInput {
  tensor_core::GemmShape shape;
  std::vector<std::uint16_t> a, b;
  std::vector<std::uint32_t> c;
};

/// Binary32's encodings of D, row by row.
std::vector<std::uint32_t> judged(const tensor_core::Gemm& how, const GemmInput& in);
std::vector<std::uint32_t> computed(const tensor_core::Gemm& how, const GemmInput& in);

/// "row 3, column 4: 3C000000, expected 3F800000", or nothing.
std::string first_difference(const GemmInput& in, const std::vector<std::uint32_t>& found,
                             const std::vector<std::uint32_t>& expected);
inline std::string difference(const tensor_core::Gemm& how, const GemmInput& in) {
  return first_difference(in, computed(how, in), judged(how, in));
}

using Halves = std::vector<std::uint16_t>;

/// A number of binary32 rounded as CUDA does.
inline std::uint32_t to_half(std::uint32_t wide) {
  return static_cast<std::uint32_t>(
      convert(kBinary16, kBinary32, wide, {.nan = NanPolicy::cuda}).bits);
}

/// chain() of whole vectors.
inline std::uint32_t whole_chain(const tensor_core::Unit& unit, tensor_core::Accumulator d,
                                 const Halves& a, const Halves& b, std::uint32_t c) {
  return tensor_core::chain(unit, d, a.data(), b.data(), static_cast<int>(a.size()), c);
}

template <class Code>
std::vector<float> floats(Format f, const std::vector<Code>& codes) {
  std::vector<float> out;
  for (const Code code : codes) {
    const std::uint64_t wide = convert(kBinary32, f, code, {.nan = NanPolicy::cuda}).bits;
    out.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(wide)));
  }
  return out;
}

}  // namespace halfscope::test
