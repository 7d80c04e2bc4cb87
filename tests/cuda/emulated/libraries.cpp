// SPDX-License-Identifier: Apache-2.0
#include "cuda/emulated/libraries.hpp"

#include <cstdio>
#include <string>

#include "cuda/emulated/library_calls.hpp"
#include "cuda/emulated/stand_ins.hpp"

namespace halfscope::emulated {
namespace {

std::string last_message;

cudnnStatus_t create(cudnnHandle_t* out) {
  *out = new cudnnContext;
  count_object(1);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t destroy(cudnnHandle_t handle) {
  if (handle == nullptr) return CUDNN_STATUS_BAD_PARAM;
  delete handle;
  count_object(-1);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t set_stream(cudnnHandle_t handle, cudaStream_t stream) {
  if (handle == nullptr || !is_stream(stream)) return CUDNN_STATUS_BAD_PARAM;
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

void say_last_error(char* message, std::size_t size) {
  std::snprintf(message, size, "%s", last_message.c_str());
}

/// The real library's: they need no device.
void put_real(sim::backend::cudnn::CudnnApi& api) {
#define HALFSCOPE_REAL(name) api.name = &::name;
  HALFSCOPE_REAL(cudnnGetVersion)
  HALFSCOPE_REAL(cudnnGetErrorString)
  HALFSCOPE_REAL(cudnnCreateTensorDescriptor)
  HALFSCOPE_REAL(cudnnSetTensor4dDescriptor)
  HALFSCOPE_REAL(cudnnDestroyTensorDescriptor)
  HALFSCOPE_REAL(cudnnCreateFilterDescriptor)
  HALFSCOPE_REAL(cudnnSetFilter4dDescriptor)
  HALFSCOPE_REAL(cudnnDestroyFilterDescriptor)
  HALFSCOPE_REAL(cudnnCreateConvolutionDescriptor)
  HALFSCOPE_REAL(cudnnSetConvolution2dDescriptor)
  HALFSCOPE_REAL(cudnnSetConvolutionMathType)
  HALFSCOPE_REAL(cudnnDestroyConvolutionDescriptor)
  HALFSCOPE_REAL(cudnnCreatePoolingDescriptor)
  HALFSCOPE_REAL(cudnnSetPooling2dDescriptor)
  HALFSCOPE_REAL(cudnnDestroyPoolingDescriptor)
#undef HALFSCOPE_REAL
}

void put_stand_ins(sim::backend::cudnn::CudnnApi& api) {
#define HALFSCOPE_PUT(name) api.name = &StandIns::name;
  HALFSCOPE_PUT(cudnnGetConvolutionForwardAlgorithm_v7)
  HALFSCOPE_PUT(cudnnGetConvolutionBackwardDataAlgorithm_v7)
  HALFSCOPE_PUT(cudnnGetConvolutionBackwardFilterAlgorithm_v7)
  HALFSCOPE_PUT(cudnnGetConvolutionForwardWorkspaceSize)
  HALFSCOPE_PUT(cudnnGetConvolutionBackwardDataWorkspaceSize)
  HALFSCOPE_PUT(cudnnGetConvolutionBackwardFilterWorkspaceSize)
  HALFSCOPE_PUT(cudnnConvolutionForward)
  HALFSCOPE_PUT(cudnnConvolutionBackwardData)
  HALFSCOPE_PUT(cudnnConvolutionBackwardFilter)
  HALFSCOPE_PUT(cudnnPoolingForward)
  HALFSCOPE_PUT(cudnnPoolingBackward)
#undef HALFSCOPE_PUT
  api.cudnnCreate = create;
  api.cudnnDestroy = destroy;
  api.cudnnSetStream = set_stream;
  api.cudnnGetLastErrorString = say_last_error;
}

sim::backend::cudnn::CudaLibraries make() {
  sim::backend::cudnn::CudaLibraries out;
  put_real(out.cudnn);
  put_stand_ins(out.cudnn);
  put_cublas(out.cublas);
  out.cudnn_path = out.cublas_path = "emulated";
  return out;
}

}  // namespace

void keep_message(const std::string& message) { last_message = message; }

const sim::backend::cudnn::CudaLibraries& emulated_libraries() {
  static const sim::backend::cudnn::CudaLibraries libraries = make();
  return libraries;
}

}  // namespace halfscope::emulated
