// SPDX-License-Identifier: Apache-2.0
// cublasGemmEx: C = alpha * op(A) * op(B) + beta * C with column-major matrices.
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cuda/emulated/device.hpp"
#include "cuda/emulated/library_calls.hpp"
#include "cuda/emulated/stand_ins.hpp"

namespace halfscope::emulated {
namespace {

void valid(bool condition, const std::string& why) {
  if (!condition) throw Refused<cublasStatus_t>(CUBLAS_STATUS_INVALID_VALUE, why);
}
void possible(bool condition, const std::string& why) {
  if (!condition) throw Refused<cublasStatus_t>(CUBLAS_STATUS_NOT_SUPPORTED, why);
}

Type type_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_16F: return Type::f16;
    case CUDA_R_16BF: return Type::bf16;
    case CUDA_R_32F: return Type::f32;
    default: throw Refused<cublasStatus_t>(CUBLAS_STATUS_NOT_SUPPORTED, "data type");
  }
}

struct Matrix {
  Type type;
  std::int64_t rows, columns, lead;  ///< as it lies in memory
  bool transposed;

  /// All elements of op(X), column by column.
  std::vector<double> values(const void* p) const {
    std::vector<double> out(static_cast<std::size_t>(rows * columns));
    for (std::int64_t column = 0; column < columns; ++column) {
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t to = transposed ? row * columns + column : column * rows + row;
        out[static_cast<std::size_t>(to)] =
            load(p, static_cast<std::size_t>(column * lead + row), type);
      }
    }
    return out;
  }
};

/// op(X) is rows x columns.
Matrix matrix(cublasOperation_t op, std::int64_t rows, std::int64_t columns, int lead,
              cudaDataType type, const std::string& what) {
  valid(op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C, what + ": the operation");
  Matrix out = {type_of(type), rows, columns, lead, op != CUBLAS_OP_N};
  if (out.transposed) std::swap(out.rows, out.columns);
  valid(lead >= std::max<std::int64_t>(1, out.rows), what + ": the leading dimension");
  return out;
}

void require_matrix(const void* p, const Matrix& m, const std::string& what) {
  const auto size = static_cast<std::size_t>((m.columns - 1) * m.lead + m.rows);
  valid(reinterpret_cast<std::uintptr_t>(p) % bytes_of(m.type) == 0, what + " is not aligned");
  valid(on_device(p, size * bytes_of(m.type)), what + " is not so much memory of the device");
}

/// The combinations of cuBLAS's table for cublasGemmEx that are of our types.
void check_types(cublasComputeType_t compute, Type a, Type b, Type c) {
  possible(a == b, "A and B of different types");
  switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      possible(a == Type::f16 && c == Type::f16, "binary16 sums of other types");
      return;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC: possible(c == a || c == Type::f32, "types"); return;
    case CUBLAS_COMPUTE_32F_FAST_TF32:
      possible(a == Type::f32 && c == Type::f32, "TF32 of other types");
      return;
    default: possible(false, "compute type");
  }
}

bool uses_tf32(cublasComputeType_t compute, cublasMath_t math) {
  const bool allowed =
      (math & ~CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION) == CUBLAS_TF32_TENSOR_OP_MATH;
  return compute == CUBLAS_COMPUTE_32F_FAST_TF32 || (compute == CUBLAS_COMPUTE_32F && allowed);
}

/// alpha or beta, of the type of the sums.
float scalar(const void* p, cublasComputeType_t compute, const std::string& what) {
  valid(p != nullptr, what + " is null");
  const bool half = compute == CUBLAS_COMPUTE_16F || compute == CUBLAS_COMPUTE_16F_PEDANTIC;
  const float value =
      half ? __half2float(*static_cast<const __half*>(p)) : *static_cast<const float*>(p);
  if (value != 0 && !std::isnormal(value)) report_problem(what + " is not of the sums' type");
  if (value == 0 && what == "alpha") report_problem("alpha is 0");
  return value;
}

cublasStatus_t create(cublasHandle_t* out) {
  *out = new cublasContext;
  count_object(1);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t destroy(cublasHandle_t handle) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete handle;
  count_object(-1);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t get_version(cublasHandle_t, int* version) {
  *version = CUBLAS_VER_MAJOR * 10000 + CUBLAS_VER_MINOR * 100 + CUBLAS_VER_PATCH;
  return CUBLAS_STATUS_SUCCESS;
}

const char* status_string(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    default: return "unknown cuBLAS status";
  }
}

/// Takes a workspace of the caller's away, as the real one does.
cublasStatus_t set_stream(cublasHandle_t handle, cudaStream_t stream) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!is_stream(stream)) return CUBLAS_STATUS_INVALID_VALUE;
  handle->stream = stream;
  handle->workspace = nullptr;
  handle->workspace_bytes = 0;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t set_workspace(cublasHandle_t handle, void* workspace, std::size_t bytes) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  const bool aligned = reinterpret_cast<std::uintptr_t>(workspace) % 256 == 0;
  if (!aligned || !on_device(workspace, bytes)) return CUBLAS_STATUS_INVALID_VALUE;
  handle->workspace = workspace;
  handle->workspace_bytes = bytes;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t set_math_mode(cublasHandle_t handle, cublasMath_t math) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  handle->math = math;
  return CUBLAS_STATUS_SUCCESS;
}

struct Gemm {
  Matrix a, b, c;
  std::int64_t k;
  bool tf32;
  float alpha = 0, beta = 0;

  void run(const void* pa, const void* pb, void* pc) const;
};

void Gemm::run(const void* pa, const void* pb, void* pc) const {
  std::vector<double> left, right;
  if (k != 0) left = a.values(pa), right = b.values(pb);
  if (tf32) {
    for (double& x : left) x = to_tf32(x);
    for (double& x : right) x = to_tf32(x);
  }
  const auto m = static_cast<std::size_t>(c.rows), inner = static_cast<std::size_t>(k);
  for (std::size_t j = 0; j < static_cast<std::size_t>(c.columns); ++j) {
    std::vector<double> sums(m);
    for (std::size_t l = 0; l < inner; ++l) {
      for (std::size_t i = 0; i < m; ++i) sums[i] += left[l * m + i] * right[j * inner + l];
    }
    for (std::size_t i = 0; i < m; ++i) {
      const std::size_t to = j * static_cast<std::size_t>(c.lead) + i;
      double result = static_cast<double>(alpha) * sums[i];
      if (beta != 0) result += static_cast<double>(beta) * load(pc, to, c.type);
      store(pc, to, c.type, result);
    }
  }
}

cublasStatus_t gemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                    int n, int k, const void* alpha, const void* a, cudaDataType a_type, int lda,
                    const void* b, cudaDataType b_type, int ldb, const void* beta, void* c,
                    cudaDataType c_type, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t) {
  if (handle == nullptr) return CUBLAS_STATUS_NOT_INITIALIZED;
  return answered<cublasStatus_t>([&] {
    valid(m >= 0 && n >= 0 && k >= 0, "extents");
    Gemm all = {matrix(op_a, m, k, lda, a_type, "A"), matrix(op_b, k, n, ldb, b_type, "B"),
                matrix(CUBLAS_OP_N, m, n, ldc, c_type, "C"), k, uses_tf32(compute, handle->math)};
    check_types(compute, all.a.type, all.b.type, all.c.type);
    all.alpha = scalar(alpha, compute, "alpha");
    all.beta = scalar(beta, compute, "beta");
    if (m == 0 || n == 0) return;
    if (k != 0) {
      require_matrix(a, all.a, "A");
      require_matrix(b, all.b, "B");
    }
    require_matrix(c, all.c, "C");
    if (handle->workspace_bytes != 0 && !on_device(handle->workspace, handle->workspace_bytes)) {
      report_problem("cublasGemmEx: the handle's workspace was freed");
    }
    enqueue(handle->stream, [=] { all.run(a, b, c); });
  });
}

}  // namespace

void put_cublas(sim::backend::cudnn::CublasApi& api) {
  api.cublasCreate_v2 = create;
  api.cublasDestroy_v2 = destroy;
  api.cublasGetVersion_v2 = get_version;
  api.cublasGetStatusString = status_string;
  api.cublasSetStream_v2 = set_stream;
  api.cublasSetWorkspace_v2 = set_workspace;
  api.cublasSetMathMode = set_math_mode;
  api.cublasGemmEx = gemm;
}

}  // namespace halfscope::emulated
