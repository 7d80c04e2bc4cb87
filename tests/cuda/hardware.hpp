// SPDX-License-Identifier: Apache-2.0
// The GPU's own half instructions, by way of the intrinsics of cuda_fp16.h. Everything here runs on
// the device and throws std::runtime_error with CUDA's message when it fails.
#pragma once

#include <cstdint>
#include <vector>

namespace hardware {

enum class Unary {
  rcp,
  sqrt,
  rsqrt,
  exp,
  exp2,
  exp10,
  log,
  log2,
  log10,
  tanh,
  tanh_approx,
  sin,
  cos
};

/// Results for all 65,536 encodings, in their order.
std::vector<std::uint16_t> all(Unary function);

/// __half2float of all 65,536 encodings, as encodings of binary32.
std::vector<std::uint32_t> all_as_float();

struct Operands {
  std::uint16_t a, b, c;
};

enum class Operation {
  add,
  add_sat,
  sub,
  sub_sat,
  mul,
  mul_sat,
  div,
  max,
  min,
  max_nan,
  min_nan,
  fma,
  fma_sat,
  fma_relu
};

std::vector<std::uint16_t> each(Operation operation, const std::vector<Operands>& in);

/// How many of the 2^32 binary32 patterns, NaNs included, the library's float2half_rn, _rz, _ru or
/// _rd (as device code) converts otherwise than the instruction.
std::uint64_t narrowing_differences();

}  // namespace hardware
