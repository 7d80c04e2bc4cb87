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
#include "tensor_core/inputs.hpp"

namespace probe {

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
  rounded_partials,  ///< each rounded to binary16, then added in binary32
  running_binary16   ///< the running sum is rounded to binary16 after each slice
};

struct GemmPlan {
  std::string name = {};
  int group = 16;  ///< products of one instruction
  int block = 0;   ///< not 0: the rest of k by this comes first
  int slice = 0;   ///< not 0: k is cut into slices of so many
  int slices = 1;
  Merge merge = Merge::binary32;
  int dropped = 0;     ///< products at the end that are left out
  bool fused = false;  ///< no Tensor Core: one chain of fused multiply-adds
};

/// Where there is a published plan for the configuration.
std::optional<GemmPlan> plan_of(const GemmConfig& config, int k);

/// Other plans, for comparison.
std::vector<GemmPlan> other_plans(const GemmConfig& config, int k);

/// One output: an encoding of `out`. a and b have k elements.
std::uint32_t predict(const GemmPlan& plan, const halfscope::tensor_core::Unit& unit,
                      Accumulator out, const std::vector<std::uint16_t>& a,
                      const std::vector<std::uint16_t>& b);

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

}  // namespace probe
