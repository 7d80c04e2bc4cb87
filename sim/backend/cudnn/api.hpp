// SPDX-License-Identifier: Apache-2.0
// Functions of cuDNN and cuBLAS, loaded by name at the first use, so that the program runs on the
// CPU on a machine without these libraries. Tests replace the function tables.
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
  X(cudnnPoolingBackward)

// NOLINTNEXTLINE(bugprone-macro-parentheses): the name in a declaration has none
#define HALFSCOPE_MEMBER(name) decltype(&::name) name = nullptr;
struct CublasApi {
  HALFSCOPE_CUBLAS_FUNCTIONS(HALFSCOPE_MEMBER)
  // cublasGemmEx() is overloaded in C++, so its type is written out.
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
  std::string cudnn_path, cublas_path;  ///< paths of the loaded files
};

/// Loads the libraries once and never unloads them. Searches the folders in
/// HALFSCOPE_CUDA_LIBRARIES (separated as in PATH), the dynamic loader's folders, the usual folder
/// of the CUDA toolkit, and Python's nvidia packages. Throws BackendMissing, which names the
/// library and the searched places.
const CudaLibraries& load_cuda_libraries();

/// Throws std::runtime_error if `status` is an error. The message has the call, the status, and
/// cuDNN's last error message.
void check(const CudnnApi& api, cudnnStatus_t status, const char* call);
void check(const CublasApi& api, cublasStatus_t status, const char* call);

}  // namespace halfscope::sim::backend::cudnn
