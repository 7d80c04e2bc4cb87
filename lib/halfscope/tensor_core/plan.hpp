// SPDX-License-Identifier: Apache-2.0
// The order in which a matrix product adds the products of an output. Kernels choose it; the bits
// of the result depend on it. docs/tensor-core.md describes what is known of cuBLAS's order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace halfscope::tensor_core {

/// How the sums of the slices of k are combined.
enum class Merge : std::uint8_t {
  binary32,          ///< added in binary32 to nearest, the first slice first
  rounded_partials,  ///< each rounded to the format of D, then added in binary32
  running_sum        ///< the running sum is rounded to the format of D after each slice
};

/// The default is one chain of the unit's steps in ascending order of k.
struct Plan {
  int group = 0;           ///< products of one instruction, which starts a new step; 0: no limit
  int residue = 0;         ///< if nonzero, the remainder of a slice divided by this comes first
  std::int64_t slice = 0;  ///< if nonzero, length of slices of k, which are summed separately
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

/// Returns the steps of each slice of k, in their order; empty if k is 0. `length`: products of the
/// unit's step. Throws std::invalid_argument if a member of the plan is negative or drops more than
/// k, or if the length is below 1.
std::vector<std::vector<StepRange>> steps_of(const Plan& plan, int length, std::int64_t k);

/// Attributes of cublasLtMatmulAlgoConfigGetAttribute on which the order depends.
struct CublasLtConfig {
  int algorithm = 0;  ///< ALGO_ID
  int stages = 0;     ///< STAGES_ID
  int slices = 1;     ///< SPLITK_NUM
  int reduction = 0;  ///< REDUCTION_SCHEME
};

/// Returns the order of cublasLt 13.1 on Hopper for a product of binary16 with sums in binary32,
/// alpha 1, beta 0; empty if it is unknown.
std::optional<Plan> plan_of(const CublasLtConfig& config, std::int64_t k);

}  // namespace halfscope::tensor_core
