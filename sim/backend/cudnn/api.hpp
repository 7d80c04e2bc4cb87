// SPDX-License-Identifier: Apache-2.0
// cuDNN and cuBLAS by name, loaded when they are first wanted: the program starts, and runs on the
// CPU, where they are not. One row a function; the tables are what tests put their own into.
#pragma once

#include <cublas_v2.h>
#include <cudnn.h>

#include <string>

#include "sim/backend/backend.hpp"

namespace halfscope::sim::backend::cudnn {

#define HALFSCOPE_CUBLAS_FUNCTIONS(X) \
  X(cublasCreate_v2)                  \
  X(cublasDestroy_v2)                 \
  X(cublasGetVersion_v2)              \
  X(cublasGetStatusString)            \
  X(cublasSetStream_v2)               \
  X(cublasSetWorkspace_v2)            \
  X(cublasSetMathMode)

#define HALFSCOPE_CUDNN_FUNCTIONS(X)                \
  X(cudnnGetVersion)                                \
  X(cudnnGetErrorString)                            \
  X(cudnnGetLastErrorString)                        \
  X(cudnnCreate)                                    \
  X(cudnnDestroy)                                   \
  X(cudnnSetStream)                                 \
  X(cudnnCreateTensorDescriptor)                    \
  X(cudnnSetTensor4dDescriptor)                     \
  X(cudnnDestroyTensorDescriptor)                   \
  X(cudnnCreateFilterDescriptor)                    \
  X(cudnnSetFilter4dDescriptor)                     \
  X(cudnnDestroyFilterDescriptor)                   \
  X(cudnnCreateConvolutionDescriptor)               \
  X(cudnnSetConvolution2dDescriptor)                \
  X(cudnnSetConvolutionMathType)                    \
  X(cudnnDestroyConvolutionDescriptor)              \
  X(cudnnGetConvolutionForwardAlgorithm_v7)         \
  X(cudnnGetConvolutionBackwardDataAlgorithm_v7)    \
  X(cudnnGetConvolutionBackwardFilterAlgorithm_v7)  \
  X(cudnnGetConvolutionForwardWorkspaceSize)        \
  X(cudnnGetConvolutionBackwardDataWorkspaceSize)   \
  X(cudnnGetConvolutionBackwardFilterWorkspaceSize) \
  X(cudnnConvolutionForward)                        \
  X(cudnnConvolutionBackwardData)                   \
  X(cudnnConvolutionBackwardFilter)                 \
  X(cudnnCreatePoolingDescriptor)                   \
  X(cudnnSetPooling2dDescriptor)                    \
  X(cudnnDestroyPoolingDescriptor)                  \
  X(cudnnPoolingForward)                            \
  X(cudnnPoolingBackward)                           \
  X(cudnnDeriveBNTensorDescriptor)                  \
  X(cudnnBatchNormalizationForwardTraining)         \
  X(cudnnBatchNormalizationForwardInference)        \
  X(cudnnBatchNormalizationBackward)

// NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's name stands without them
#define HALFSCOPE_MEMBER(name) decltype(&::name) name = nullptr;
struct CublasApi {
  HALFSCOPE_CUBLAS_FUNCTIONS(HALFSCOPE_MEMBER)
  // Overloaded in C++, so that its type must be told.
  cublasStatus_t (*cublasGemmEx)(cublasHandle_t, cublasOperation_t, cublasOperation_t, int m, int n,
                                 int k, const void* alpha, const void* a, cudaDataType, int lda,
                                 const void* b, cudaDataType, int ldb, const void* beta, void* c,
                                 cudaDataType, int ldc, cublasComputeType_t,
                                 cublasGemmAlgo_t) = nullptr;
};
struct CudnnApi {
  HALFSCOPE_CUDNN_FUNCTIONS(HALFSCOPE_MEMBER)
};
#undef HALFSCOPE_MEMBER

struct CudaLibraries {
  CudnnApi cudnn;
  CublasApi cublas;
  std::string cudnn_path, cublas_path;  ///< of the files they were loaded from
};

/// Looks in the folders of HALFSCOPE_CUDA_LIBRARIES (as PATH), where the dynamic loader looks, in
/// the CUDA toolkit's usual place, and in Python's nvidia packages. Loaded once; never unloaded.
/// Throws BackendMissing, which names what was wanted and where it was looked for.
const CudaLibraries& load_cuda_libraries();

/// Throws std::runtime_error that names the call, the status, and cuDNN's own last words.
void check(const CudnnApi& api, cudnnStatus_t status, const char* call);
void check(const CublasApi& api, cublasStatus_t status, const char* call);

}  // namespace halfscope::sim::backend::cudnn
