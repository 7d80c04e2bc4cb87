// SPDX-License-Identifier: Apache-2.0
// The numbers headers compiled by nvcc, as host and as device code, behind plain functions.
#pragma once

#include <cstdint>
#include <vector>

#include "halfscope/number/convert.hpp"

namespace twin {

struct Conversion {
  halfscope::Format to, from;
  halfscope::Rounding mode = halfscope::Rounding::ties_to_even;
  halfscope::Tininess tininess = halfscope::Tininess::after_rounding;
};

bool has_device();

/// Encodings of `from` converted one by one: by nvcc's host code, and by a kernel.
/// Throws std::runtime_error with CUDA's message when the device fails.
std::vector<halfscope::Rounded> on_host(const Conversion& c, const std::vector<std::uint64_t>& in);
std::vector<halfscope::Rounded> on_device(const Conversion& c,
                                          const std::vector<std::uint64_t>& in);

/// Every `stride`-th of the 2^32 binary32 patterns, NaNs left out, into binary16 in the four
/// directions of cuda_fp16.h: how many differ from CUDA's own conversion, compiled for the host and
/// run on the device (there by the GPU's instruction). The device also widens each result again.
std::uint64_t differences_to_cuda_host(std::uint64_t stride);
std::uint64_t differences_to_cuda_device(std::uint64_t stride);

}  // namespace twin
