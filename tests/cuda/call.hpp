// SPDX-License-Identifier: Apache-2.0
// One call of one scalar operation, in plain numbers: what g++'s, nvcc's host and the GPU's copy of
// the library are all given.
#pragma once

#include <cstdint>
#include <vector>

namespace twin {

enum class Operation : std::uint8_t {
  add,
  subtract,
  multiply,
  divide,
  fused_multiply_add,
  square_root,
  remainder,
  convert,
  round_to_integral,
  to_integer,
  from_integer,
  equal,
  less,
  less_equal,
  unordered,
  total_order,
  minimum,
  maximum,
  minimum_number,
  maximum_number,
  min_num,
  max_num,
  next_up,
  next_down,
  scale_b,
  log_b,
  signs,  ///< negate, absolute and copy_sign in one number
  classify,
  random_word,
  quantise_element,
  block,
  half_binary,  ///< hadd ... hmin_nan, by `variant`
  half_unary,   ///< hrcp, hsqrt, hrsqrt, by `variant`
  count
};

/// A format in numbers: the enumeration Specials is the library's, so here it is its number.
struct FormatRow {
  int precision, emax, width, specials;
};

struct Call {
  Operation operation;
  FormatRow format, other;  ///< other: the target of convert
  std::uint64_t a, b, c;
  int variant;  ///< integer type, exact or not, quiet or signaling, rounding of elements
  int rounding, tininess, nan;
  bool denormals_are_zero, flush_to_zero, saturate;
  std::uint32_t random;
  int random_bits;
};

struct Outcome {
  std::uint64_t bits;
  std::uint32_t flags;  ///< TestFloat's bits

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

std::vector<Outcome> by_gcc(const std::vector<Call>& calls);
std::vector<Outcome> by_nvcc_on_host(const std::vector<Call>& calls);
/// Throws std::runtime_error with CUDA's message when the device fails.
std::vector<Outcome> on_device(const std::vector<Call>& calls);

}  // namespace twin
