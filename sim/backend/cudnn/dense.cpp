// SPDX-License-Identifier: Apache-2.0
// Dense layers by cuBLAS, whose matrices are column-major: a row-major (N, C) matrix is its C x N
// matrix with leading dimension C. So y = x w^T is computed as y^T = w x^T, and so on.
#include <cuda_fp16.h>

#include "sim/backend/check_shapes.hpp"
#include "sim/backend/cudnn/backend.hpp"

namespace halfscope::sim::backend::cudnn {

/// Arguments of c (m x n) = a (m x k) b (k x n), plus the old c if `add`, in cuBLAS's view. In a
/// matrix that is not transposed, the elements of a column are adjacent.
struct CudnnBackend::Product {
  std::int64_t m, n, k;
  cublasOperation_t op_a;
  const Tensor& a;
  std::int64_t lead_a;
  cublasOperation_t op_b;
  const Tensor& b;
  std::int64_t lead_b;
  Tensor& c;
  bool add;
};

namespace {

cudaDataType_t cuda_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return CUDA_R_32F;
    case Dtype::f16: return CUDA_R_16F;
    case Dtype::bf16: return CUDA_R_16BF;
    default: throw std::invalid_argument("sim: tensors are F32, F16 or BF16");
  }
}

}  // namespace

void CudnnBackend::multiply(const Product& p) {
  require_same_dtype("a product", {p.a, p.b, p.c});
  const bool narrow_sums = accumulation_ == Accumulation::fp16 && p.c.dtype == Dtype::f16;
  const cublasComputeType_t compute = narrow_sums               ? CUBLAS_COMPUTE_16F
                                      : p.c.dtype == Dtype::f32 ? CUBLAS_COMPUTE_32F_PEDANTIC
                                                                : CUBLAS_COMPUTE_32F;
  // The factors have the type of the sums.
  const float wide_factors[] = {1, p.add ? 1.0F : 0.0F};
  const __half narrow_factors[] = {__float2half_rn(1), __float2half_rn(p.add ? 1.0F : 0.0F)};
  const void* const alpha = narrow_sums ? static_cast<const void*>(narrow_factors) : wide_factors;
  const void* const beta =
      narrow_sums ? static_cast<const void*>(narrow_factors + 1) : wide_factors + 1;
  const cudaDataType_t type = cuda_type(p.c.dtype);
  const auto i = [](std::int64_t extent) { return static_cast<int>(extent); };
  device_->check(device_->libraries().cublas.cublasGemmEx(
                     device_->cublas(), p.op_a, p.op_b, i(p.m), i(p.n), i(p.k), alpha,
                     device_data(p.a), type, i(p.lead_a), device_data(p.b), type, i(p.lead_b), beta,
                     device_data(p.c), type, i(p.m), compute, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx");
}

void CudnnBackend::dense_forward(const Tensor& x, const Tensor& w, const Tensor& b, Tensor& y) {
  const DenseExtents e = require_dense(x.shape, w.shape, y.shape);
  if (b) {
    require_bias(b, e.k);
    backend::cudnn::kernels::fill_rows(elements_of(b), elements_of(y), e.n, e.k, stream());
  }
  // y^T (K x N) = w (K x C) x^T (C x N)
  multiply({e.k, e.n, e.c, CUBLAS_OP_T, w, e.c, CUBLAS_OP_N, x, e.c, y, static_cast<bool>(b)});
}

void CudnnBackend::dense_data_gradient(const Tensor& dy, const Tensor& w, Tensor& dx) {
  const DenseExtents e = require_dense(dx.shape, w.shape, dy.shape);
  // dx^T (C x N) = w^T (C x K) dy^T (K x N)
  multiply({e.c, e.n, e.k, CUBLAS_OP_N, w, e.c, CUBLAS_OP_N, dy, e.k, dx, false});
}

void CudnnBackend::dense_weight_gradient(const Tensor& x, const Tensor& dy, Tensor& dw, bool add) {
  const DenseExtents e = require_dense(x.shape, dw.shape, dy.shape);
  // dw^T (C x K) = x^T (C x N) dy (N x K)
  multiply({e.c, e.k, e.n, CUBLAS_OP_N, x, e.c, CUBLAS_OP_T, dy, e.k, dw, add});
}

void CudnnBackend::bias_gradient(const Tensor& dy, Tensor& db, bool add) {
  const std::int64_t width = require_bias_gradient(dy.shape, db.shape);
  const std::int64_t rows = dy.size() / width;
  const auto bytes =
      static_cast<std::size_t>(backend::cudnn::kernels::partial_sums(rows) * width) * sizeof(float);
  backend::cudnn::kernels::sum_rows(elements_of(dy), rows, width,
                                    static_cast<float*>(device_->workspace(bytes)), elements_of(db),
                                    add, stream());
}

}  // namespace halfscope::sim::backend::cudnn
