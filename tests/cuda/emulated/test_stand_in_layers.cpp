// SPDX-License-Identifier: Apache-2.0
// The stand-ins for pooling and cublasGemmEx: small cases computed by hand.
#include <cuda_fp16.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "cuda/device.hpp"
#include "cuda/emulated/device.hpp"
#include "cuda/emulated/stand_in_fixture.hpp"

namespace test_stand_in_layers {

using namespace halfscope;
using namespace stand_in;

TEST_CASE("pooling and its gradient by hand", "[emulated][libraries]") {
  const auto type = CUDNN_DATA_HALF;
  const Handle h;
  const Tensor x(type, 1, 2, 4, 1), y(type, 1, 1, 2, 1);
  const Values in(type, {1, 5, 7, 7, 5, 2, 7, kNan}), dy(type, {10, 100});
  const auto run = [&](const Pooling& pooling) {
    const Values out(type, Floats(2, kNan)), dx(type, Floats(8, kNan));
    CHECK(dnn().cudnnPoolingForward(h.handle, pooling.descriptor, &kOne, x.descriptor, in.get(),
                                    &kZero, y.descriptor, out.get()) == CUDNN_STATUS_SUCCESS);
    CHECK(dnn().cudnnPoolingBackward(h.handle, pooling.descriptor, &kOne, y.descriptor, out.get(),
                                     y.descriptor, dy.get(), x.descriptor, in.get(), &kZero,
                                     x.descriptor, dx.get()) == CUDNN_STATUS_SUCCESS);
    Floats both = out.floats();
    const Floats gradient = dx.floats();
    both.insert(both.end(), gradient.begin(), gradient.end());
    return both;
  };
  const auto max = CUDNN_POOLING_MAX_DETERMINISTIC;
  CHECK(run(Pooling(max, 2, 2, 0, CUDNN_NOT_PROPAGATE_NAN)) ==
        Floats{5, 7, 0, 10, 100, 0, 0, 0, 0, 0});
  const Floats with_nan = run(Pooling(max, 2, 2));
  CHECK(std::isnan(with_nan[1]));
  CHECK(with_nan.back() == 100);
  const Floats mean = run(Pooling(CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, 2, 2));
  CHECK(mean[0] == 3.25F);
  CHECK(mean[2] == 2.5F);
  CHECK(emulated::take_problems() == "");
  const Pooling pooling(max, 2, 2);
  const Values dx(type, Floats(8));
  CHECK(dnn().cudnnPoolingBackward(h.handle, pooling.descriptor, &kOne, y.descriptor, dy.get(),
                                   y.descriptor, dy.get(), x.descriptor, in.get(), &kZero,
                                   x.descriptor, dx.get()) == CUDNN_STATUS_SUCCESS);
  CHECK(emulated::take_problems() == "cudnnPoolingBackward: y is not x pooled\n");
  CHECK(dnn().cudnnPoolingForward(h.handle, pooling.descriptor, &kOne, y.descriptor, in.get(),
                                  &kZero, x.descriptor, dx.get()) == CUDNN_STATUS_BAD_PARAM);
}

TEST_CASE("averages count padding or do not", "[emulated][libraries]") {
  const auto type = CUDNN_DATA_FLOAT;
  const Handle h;
  const Tensor x(type, 1, 1, 1, 1), y(type, 1, 1, 1, 1);
  const Values in(type, {9}), out(type, {kNan});
  for (const auto& [mode, want] : {std::pair(CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING, 1.0F),
                                   std::pair(CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING, 9.0F)}) {
    const Pooling pooling(mode, 3, 1, 1);
    CHECK(dnn().cudnnPoolingForward(h.handle, pooling.descriptor, &kOne, x.descriptor, in.get(),
                                    &kZero, y.descriptor, out.get()) == CUDNN_STATUS_SUCCESS);
    CHECK(out.floats() == Floats{want});
  }
}

struct Blas {
  Blas() { blas().cublasCreate_v2(&handle); }
  Blas(const Blas&) = delete;
  ~Blas() { blas().cublasDestroy_v2(handle); }
  cublasHandle_t handle = nullptr;
};

/// C (2 x 2) = op(A) op(B) of the six numbers each, with an inner extent of 3.
cublasStatus_t multiply(const Blas& on, cublasOperation_t op_a, int lda, cublasOperation_t op_b,
                        int ldb, const Values& c, cudnnDataType_t c_type, int ldc,
                        cublasComputeType_t compute, const void* alpha, const void* beta) {
  const Values a(CUDNN_DATA_HALF, {1, 2, 3, 4, 5, 6}), b(CUDNN_DATA_HALF, {1, 10, 100, 2, 20, 200});
  return blas().cublasGemmEx(on.handle, op_a, op_b, 2, 2, 3, alpha, a.get(), CUDA_R_16F, lda,
                             b.get(), CUDA_R_16F, ldb, beta, c.get(),
                             c_type == CUDNN_DATA_FLOAT ? CUDA_R_32F : CUDA_R_16F, ldc, compute,
                             CUBLAS_GEMM_DEFAULT);
}

TEST_CASE("products of matrices, column-major, by hand", "[emulated][libraries]") {
  const Blas on;
  const auto none = CUBLAS_OP_N, across = CUBLAS_OP_T;
  const auto single = CUBLAS_COMPUTE_32F;
  const auto f32 = CUDNN_DATA_FLOAT, f16 = CUDNN_DATA_HALF;
  const Values c(f32, Floats(5, kNan));
  // A = 1 3 5   B =   1   2
  //     2 4 6        10  20
  //                 100 200
  REQUIRE(multiply(on, none, 2, none, 3, c, f32, 2, single, &kOne, &kZero) ==
          CUBLAS_STATUS_SUCCESS);
  CHECK(device::fetch(static_cast<float*>(c.get()), 4) == Floats{531, 642, 1062, 1284});
  REQUIRE(multiply(on, across, 3, none, 3, c, f32, 2, single, &kTwo, &kOne) ==
          CUBLAS_STATUS_SUCCESS);  // A^T = 1 2 3 / 4 5 6
  CHECK(device::fetch(static_cast<float*>(c.get()), 4) ==
        Floats{531 + 642, 642 + 1308, 1062 + 1284, 1284 + 2616});
  const Values gap(f32, Floats(5, 7));
  REQUIRE(multiply(on, none, 2, across, 2, gap, f32, 3, single, &kOne, &kZero) ==
          CUBLAS_STATUS_SUCCESS);  // B^T's first row is 1 100 20
  CHECK(gap.floats() == Floats{1 + 300 + 100, 2 + 400 + 120, 7, 10 + 6 + 1000, 20 + 8 + 1200});
  const __half one = __float2half_rn(1), zero = __float2half_rn(0);
  const Values narrow(f16, Floats(4, kNan));
  REQUIRE(multiply(on, none, 2, none, 3, narrow, f16, 2, CUBLAS_COMPUTE_16F, &one, &zero) ==
          CUBLAS_STATUS_SUCCESS);
  CHECK(narrow.floats() == Floats{531, 642, 1062, 1284});
  CHECK(emulated::take_problems() == "");
}

TEST_CASE("products that are refused", "[emulated][libraries]") {
  const Blas on;
  const auto none = CUBLAS_OP_N, across = CUBLAS_OP_T;
  const auto single = CUBLAS_COMPUTE_32F;
  const auto f32 = CUDNN_DATA_FLOAT;
  const Values c(f32, Floats(4));
  const auto invalid = CUBLAS_STATUS_INVALID_VALUE;
  CHECK(multiply(on, none, 1, none, 3, c, f32, 2, single, &kOne, &kZero) == invalid);
  CHECK(multiply(on, across, 2, none, 3, c, f32, 2, single, &kOne, &kZero) == invalid);
  CHECK(multiply(on, none, 2, none, 2, c, f32, 2, single, &kOne, &kZero) == invalid);
  CHECK(multiply(on, none, 2, none, 3, c, f32, 1, single, &kOne, &kZero) == invalid);
  CHECK(multiply(on, none, 2, none, 3, c, f32, 3, single, &kOne, &kZero) == invalid);  // too short
  CHECK(multiply(on, none, 3, none, 3, c, f32, 2, single, &kOne, &kZero) == invalid);
  CHECK(multiply(on, none, 2, none, 3, c, f32, 2, single, nullptr, &kZero) == invalid);
  CHECK(multiply(on, none, 2, none, 3, c, f32, 2, CUBLAS_COMPUTE_16F, &kOne, &kZero) ==
        CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(emulated::take_problems() == "");
  const __half one = __float2half_rn(1);
  struct {
    __half first, second;
  } const halves = {one, __float2half_rn(0)};  // alpha of a wrong type
  CHECK(multiply(on, none, 2, none, 3, c, f32, 2, single, &halves, &kZero) ==
        CUBLAS_STATUS_SUCCESS);
  CHECK(emulated::take_problems() == "alpha is not of the sums' type\n");

  const auto allocate_uninitialized = device::allocate<char>(512);
  CHECK(blas().cublasSetWorkspace_v2(on.handle, allocate_uninitialized.get() + 1, 256) == invalid);
  CHECK(blas().cublasSetWorkspace_v2(on.handle, allocate_uninitialized.get(), 513) == invalid);
  CHECK(blas().cublasSetWorkspace_v2(on.handle, allocate_uninitialized.get(), 512) ==
        CUBLAS_STATUS_SUCCESS);
}

}  // namespace test_stand_in_layers
