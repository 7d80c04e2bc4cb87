// SPDX-License-Identifier: Apache-2.0
// Outputs of whole products by cublasLt, kept for tests on machines without a GPU. The file, little
// endian: "HSTG", u32 version 1, u32 rows; each row u16 m, u16 n, u16 k, u8 transposed, u8 format
// of D (0 binary16, 1 binary32), u8 no workspace, u8 kind of inputs, u8 ALGO_ID, u8 STAGES_ID, u16
// SPLITK_NUM, u8 REDUCTION_SCHEME, u8 outputs; then the outputs, in D's format: output i is that of
// gemm_output(shape, i).
#pragma once

#include <filesystem>
#include <vector>

#include "tensor_core/gemm_inputs.hpp"
#include "tensor_core/gemm_plan.hpp"

namespace probe {

struct GemmRow {
  GemmShape shape;
  Accumulator out;
  bool predictable;  ///< no workspace, no reduction
  GemmInputs inputs;
  GemmConfig config;
  std::vector<std::uint32_t> d;
};

/// Throw std::runtime_error that names the file.
void write_gemm_golden(const std::filesystem::path& file, const std::vector<GemmRow>& rows);
std::vector<GemmRow> read_gemm_golden(const std::filesystem::path& file);

}  // namespace probe
