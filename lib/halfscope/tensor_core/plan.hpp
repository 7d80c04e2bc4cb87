// SPDX-License-Identifier: Apache-2.0
// In which order a matrix product adds the products of one output. Kernels choose it; the bits of
// the result depend on it. What is known of cuBLAS's: docs/tensor-core.md.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace halfscope::tensor_core {

/// How the sums of the slices of k become one.
enum class Merge : std::uint8_t {
  binary32,          ///< added in binary32 to nearest, the first slice first
  rounded_partials,  ///< each rounded to the format of D, then added in binary32
  running_sum        ///< the running sum is rounded to the format of D after each slice
};

/// The default is one chain of the unit's steps, k ascending.
struct Plan {
  int group = 0;           ///< products of one instruction, which begins a new step; 0: no limit
  int residue = 0;         ///< not 0: the rest of a slice by this comes first
  std::int64_t slice = 0;  ///< not 0: k is cut into slices of so many, which are added apart
  Merge merge = Merge::binary32;
  std::int64_t dropped = 0;  ///< products at the end of k that are skipped

  friend constexpr bool operator==(const Plan&, const Plan&) = default;
};

/// Products [first, first + count) of k.
struct StepRange {
  std::int64_t first;
  int count;

  friend constexpr bool operator==(const StepRange&, const StepRange&) = default;
};

/// The steps of each slice of k, in their order; `length`: of the unit's step. None where k is 0.
/// Throws std::invalid_argument where a member of the plan is negative or drops more than k, or the
/// length is below 1.
std::vector<std::vector<StepRange>> steps_of(const Plan& plan, int length, std::int64_t k);

/// The attributes of cublasLtMatmulAlgoConfigGetAttribute that the order depends on.
struct CublasLtConfig {
  int algorithm = 0;  ///< ALGO_ID
  int stages = 0;     ///< STAGES_ID
  int slices = 1;     ///< SPLITK_NUM
  int reduction = 0;  ///< REDUCTION_SCHEME
};

/// The order of cublasLt 13.1 on Hopper for a product of binary16 with sums of binary32, alpha 1,
/// beta 0, where it is known.
std::optional<Plan> plan_of(const CublasLtConfig& config, std::int64_t k);

}  // namespace halfscope::tensor_core
