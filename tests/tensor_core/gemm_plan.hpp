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
#include "halfscope/tensor_core/plan.hpp"

namespace probe {

using halfscope::tensor_core::Accumulator;
using halfscope::tensor_core::Merge;

/// Of cublasLtMatmulAlgoConfigGetAttribute.
struct GemmConfig {
  int algorithm = 0;
  std::uint32_t tile = 0;
  int slices = 1;  ///< SPLITK_NUM
  std::uint32_t reduction = 0, swizzle = 0, custom = 0, stages = 0;
  std::uint16_t inner_shape = 0, cluster_shape = 0;
};

struct GemmPlan {
  std::string name = {};
  halfscope::tensor_core::Plan plan = {.group = 16};
  bool fused = false;  ///< no Tensor Core: one chain of fused multiply-adds
};

/// Where a plan is known for the configuration.
std::optional<GemmPlan> plan_of(const GemmConfig& config, int k);

/// Other plans, for comparison.
std::vector<GemmPlan> other_plans(const GemmConfig& config, int k);

/// One output, by chain(): an encoding of `out`. a and b have k elements. The judge of gemm().
std::uint32_t predict(const GemmPlan& plan, const halfscope::tensor_core::Unit& unit,
                      Accumulator out, const std::vector<std::uint16_t>& a,
                      const std::vector<std::uint16_t>& b);

}  // namespace probe
