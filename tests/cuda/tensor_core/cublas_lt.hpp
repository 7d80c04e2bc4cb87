// SPDX-License-Identifier: Apache-2.0
// cublasLt by name, loaded when it is wanted, and one product by the first choice of its heuristic.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>

#include "tensor_core/gemm_inputs.hpp"
#include "tensor_core/gemm_plan.hpp"

namespace probe {

/// What the heuristic may choose from.
struct GemmLimits {
  std::size_t workspace;
  bool no_reduction;  ///< CUBLASLT_REDUCTION_SCHEME_NONE
};

class CublasLt {
 public:
  /// Throws where the library is not there, or has no such functions.
  CublasLt();
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  std::string version() const;

  /// Device memory: a and b of binary16, d of `out`. Throws std::runtime_error with cuBLAS's
  /// status.
  GemmConfig multiply(const GemmShape& shape, const GemmLimits& limits, Accumulator out,
                      const void* a, const void* b, void* d, void* workspace);

 private:
  struct Api;
  struct Call;
  std::unique_ptr<Api> api_;
  cublasLtHandle_t handle_ = nullptr;
};

}  // namespace probe
