// SPDX-License-Identifier: Apache-2.0
// The lists of algorithms and their workspaces: made up, but of the kinds that real lists hold.
#include <algorithm>
#include <string>

#include "cuda/emulated/convolution_call.hpp"
#include "cuda/emulated/device.hpp"
#include "cuda/emulated/stand_ins.hpp"

namespace halfscope::emulated {
namespace {

constexpr std::size_t kTooMuch = std::size_t{6} << 30;  // more than the device has

/// Of the order of what transformed inputs need.
std::size_t some_memory(const ConvolutionCall& call) {
  return static_cast<std::size_t>(call.w.size() + call.x.size()) * 4 / 16 * 16;
}

/// The math types an algorithm is listed with: one that is faster first.
std::vector<cudnnMathType_t> maths(const ConvolutionCall& call) {
  switch (call.math) {
    case CUDNN_FMA_MATH: return {CUDNN_FMA_MATH};
    case CUDNN_DEFAULT_MATH:
      if (call.x.type == Type::f32) return {CUDNN_TENSOR_OP_MATH, CUDNN_DEFAULT_MATH};
      return {CUDNN_DEFAULT_MATH};
    default: return {CUDNN_TENSOR_OP_MATH, CUDNN_DEFAULT_MATH};
  }
}

template <class Performance>
Performance entry(int number, cudnnStatus_t status) {
  Performance out{};
  out.algo = static_cast<decltype(out.algo)>(number);
  out.status = status;
  out.time = -1;
  out.determinism = CUDNN_DETERMINISTIC;
  return out;
}

/// As cuDNN lists them: what is expected to be faster first, what is not supported last.
template <class Performance>
void list(const ConvolutionCall& call, const std::vector<Algorithm>& known, int unsupported,
          int requested, int* returned, Performance* out) {
  require(requested > 0 && returned != nullptr && out != nullptr, "room for no algorithm");
  std::vector<Performance> all;
  for (const Algorithm& algorithm : known) {
    for (const cudnnMathType_t math : maths(call)) {
      all.push_back(entry<Performance>(algorithm.number, CUDNN_STATUS_SUCCESS));
      all.back().memory = algorithm.memory;
      all.back().mathType = math;
      if (!algorithm.deterministic) all.back().determinism = CUDNN_NON_DETERMINISTIC;
    }
  }
  all.push_back(entry<Performance>(unsupported, CUDNN_STATUS_NOT_SUPPORTED));
  *returned = std::min(requested, static_cast<int>(all.size()));
  std::copy_n(all.begin(), *returned, out);
}

void workspace_size(const std::vector<Algorithm>& known, int number, std::size_t* bytes) {
  require(bytes != nullptr, "no place for the size");
  for (const Algorithm& algorithm : known) {
    if (algorithm.number != number) continue;
    *bytes = algorithm.memory == 0 ? 0 : algorithm.memory + kMoreWorkspace;
    return;
  }
  supported(false, "algorithm " + std::to_string(number));
}

}  // namespace

std::vector<Algorithm> forward_algorithms(const ConvolutionCall& call) {
  return {{CUDNN_CONVOLUTION_FWD_ALGO_GEMM, true, kTooMuch},
          {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, true, some_memory(call)},
          {CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, true, 0}};
}

std::vector<Algorithm> data_algorithms(const ConvolutionCall& call) {
  return {{CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, false, 0},
          {CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, true, some_memory(call)}};
}

std::vector<Algorithm> filter_algorithms(const ConvolutionCall& call) {
  return {{CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3, false, some_memory(call)},
          {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0, false, 0},
          {CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, true, some_memory(call) + 4096}};
}

Algorithm checked(const std::vector<Algorithm>& known, int number, void* workspace,
                  std::size_t bytes) {
  std::size_t needed = 0;
  workspace_size(known, number, &needed);
  require(bytes >= needed, "a workspace of " + std::to_string(bytes) + " bytes; needed are " +
                               std::to_string(needed));
  require(bytes == 0 || on_device(workspace, bytes), "the workspace is not the device's");
  const auto found = std::find_if(known.begin(), known.end(),
                                  [&](const Algorithm& a) { return a.number == number; });
  return *found;
}

cudnnStatus_t StandIns::cudnnGetConvolutionForwardAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y,
    const int requested, int* returned, cudnnConvolutionFwdAlgoPerf_t* out) {
  return answered<cudnnStatus_t>([&] {
    require(handle != nullptr, "no handle");
    const ConvolutionCall call(x, w, convolution, y);
    list(call, forward_algorithms(call), CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, requested, returned,
         out);
  });
}

cudnnStatus_t StandIns::cudnnGetConvolutionBackwardDataAlgorithm_v7(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx,
    const int requested, int* returned, cudnnConvolutionBwdDataAlgoPerf_t* out) {
  return answered<cudnnStatus_t>([&] {
    require(handle != nullptr, "no handle");
    const ConvolutionCall call(dx, w, convolution, dy);
    list(call, data_algorithms(call), CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD, requested, returned,
         out);
  });
}

cudnnStatus_t StandIns::cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw,
    const int requested, int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* out) {
  return answered<cudnnStatus_t>([&] {
    require(handle != nullptr, "no handle");
    const ConvolutionCall call(x, dw, convolution, dy);
    list(call, filter_algorithms(call), CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT, requested, returned,
         out);
  });
}

cudnnStatus_t StandIns::cudnnGetConvolutionForwardWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnFilterDescriptor_t w,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t y,
    cudnnConvolutionFwdAlgo_t algorithm, std::size_t* bytes) {
  return answered<cudnnStatus_t>([&] {
    require(handle != nullptr, "no handle");
    workspace_size(forward_algorithms(ConvolutionCall(x, w, convolution, y)), algorithm, bytes);
  });
}

cudnnStatus_t StandIns::cudnnGetConvolutionBackwardDataWorkspaceSize(
    cudnnHandle_t handle, const cudnnFilterDescriptor_t w, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnTensorDescriptor_t dx,
    cudnnConvolutionBwdDataAlgo_t algorithm, std::size_t* bytes) {
  return answered<cudnnStatus_t>([&] {
    require(handle != nullptr, "no handle");
    workspace_size(data_algorithms(ConvolutionCall(dx, w, convolution, dy)), algorithm, bytes);
  });
}

cudnnStatus_t StandIns::cudnnGetConvolutionBackwardFilterWorkspaceSize(
    cudnnHandle_t handle, const cudnnTensorDescriptor_t x, const cudnnTensorDescriptor_t dy,
    const cudnnConvolutionDescriptor_t convolution, const cudnnFilterDescriptor_t dw,
    cudnnConvolutionBwdFilterAlgo_t algorithm, std::size_t* bytes) {
  return answered<cudnnStatus_t>([&] {
    require(handle != nullptr, "no handle");
    workspace_size(filter_algorithms(ConvolutionCall(x, dw, convolution, dy)), algorithm, bytes);
  });
}

}  // namespace halfscope::emulated
