// SPDX-License-Identifier: Apache-2.0
// In which order cuBLAS adds the products of one output, from the configuration that its heuristic
// gives: FP16 operands, sums in binary32, alpha 1, beta 0. What is known of it:
// docs/tensor-core.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "halfscope/tensor_core/mma.hpp"

namespace probe {

using halfscope::tensor_core::Accumulator;

/// Of cublasLtMatmulAlgoConfigGetAttribute.
struct GemmConfig {
  int algorithm = 0;
  std::uint32_t tile = 0;
  int slices = 1;  ///< SPLITK_NUM
  std::uint32_t reduction = 0, swizzle = 0, custom = 0, stages = 0;
  std::uint16_t inner_shape = 0, cluster_shape = 0;
};

/// How the sums of the slices of k become one.
enum class Merge : std::uint8_t {
  binary32,          ///< added in binary32, the first slice first
  rounded_partials,  ///< each rounded to the format of D, then added in binary32
  running_sum        ///< the running sum is rounded to the format of D after each slice
};

struct GemmPlan {
  std::string name = {};
  int group = 16;  ///< products of one instruction
  int block = 0;   ///< not 0: the rest of k by this comes first
  int slice = 0;   ///< not 0: k is cut into slices of so many
  int slices = 1;
  Merge merge = Merge::binary32;
  int dropped = 0;     ///< products at the end that are skipped
  bool fused = false;  ///< no Tensor Core: one chain of fused multiply-adds
};

/// Where a plan is known for the configuration.
std::optional<GemmPlan> plan_of(const GemmConfig& config, int k);

/// Other plans, for comparison.
std::vector<GemmPlan> other_plans(const GemmConfig& config, int k);

/// One output: an encoding of `out`. a and b have k elements.
std::uint32_t predict(const GemmPlan& plan, const halfscope::tensor_core::Unit& unit,
                      Accumulator out, const std::vector<std::uint16_t>& a,
                      const std::vector<std::uint16_t>& b);

}  // namespace probe
