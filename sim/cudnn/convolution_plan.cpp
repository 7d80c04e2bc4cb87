// SPDX-License-Identifier: Apache-2.0
#include "sim/cudnn/convolution_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <functional>
#include <optional>
#include <span>

namespace halfscope::sim {
namespace {

constexpr std::size_t kMostWorkspace = std::size_t{1} << 30;

std::string name_of(cudnnConvolutionFwdAlgo_t algorithm) {
  constexpr std::array kNames = {
      "IMPLICIT_GEMM", "IMPLICIT_PRECOMP_GEMM", "GEMM", "DIRECT", "FFT", "FFT_TILING",
      "WINOGRAD",      "WINOGRAD_NONFUSED"};
  return kNames.at(static_cast<std::size_t>(algorithm));
}
std::string name_of(cudnnConvolutionBwdDataAlgo_t algorithm) {
  constexpr std::array kNames = {"ALGO_0",     "ALGO_1",   "FFT",
                                 "FFT_TILING", "WINOGRAD", "WINOGRAD_NONFUSED"};
  return kNames.at(static_cast<std::size_t>(algorithm));
}
std::string name_of(cudnnConvolutionBwdFilterAlgo_t algorithm) {
  constexpr std::array kNames = {
      "ALGO_0", "ALGO_1", "FFT", "ALGO_3", "WINOGRAD", "WINOGRAD_NONFUSED", "FFT_TILING"};
  return kNames.at(static_cast<std::size_t>(algorithm));
}

std::string_view name_of(cudnnMathType_t math) {
  switch (math) {
    case CUDNN_DEFAULT_MATH: return "DEFAULT_MATH";
    case CUDNN_TENSOR_OP_MATH: return "TENSOR_OP_MATH";
    case CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION: return "TENSOR_OP_MATH_ALLOW_CONVERSION";
    case CUDNN_FMA_MATH: return "FMA_MATH";
  }
  return "unknown";
}

bool on_tensor_cores(cudnnMathType_t math) {
  return math == CUDNN_TENSOR_OP_MATH || math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
}

/// The first that may be used, in cuDNN's order of expected speed; null where none may. Narrow
/// tensors want Tensor Cores, if any deterministic algorithm has them; binary32 must not have them.
template <class Performance>
const Performance* choose(std::span<const Performance> found, bool narrow) {
  const Performance* without = nullptr;
  for (const Performance& p : found) {
    if (p.status != CUDNN_STATUS_SUCCESS || p.determinism != CUDNN_DETERMINISTIC ||
        p.memory > kMostWorkspace) {
      continue;
    }
    if (on_tensor_cores(p.mathType) == narrow) return &p;
    if (without == nullptr && narrow) without = &p;
  }
  return without;
}

/// One operation: how cuDNN is asked for its algorithms, and for the workspace of one.
template <class Algorithm, class Performance>
struct Question {
  const char* what;
  std::function<cudnnStatus_t(cudnnConvolutionDescriptor_t, int, int*, Performance*)> algorithms;
  std::function<cudnnStatus_t(cudnnConvolutionDescriptor_t, Algorithm, std::size_t*)> workspace;
};

template <class Algorithm, class Performance>
std::optional<ChosenAlgorithm<Algorithm>> ask(const CudnnApi& api, const ConvolutionKey& key,
                                              cudnnDataType_t compute,
                                              const Question<Algorithm, Performance>& question) {
  constexpr int kMost = 32;
  const bool narrow = key.dtype != Dtype::f32;
  const ConvolutionDescriptor asked(api, key.conv, compute,
                                    narrow ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH);
  std::array<Performance, kMost> found{};
  int count = 0;
  const cudnnStatus_t status = question.algorithms(asked, kMost, &count, found.data());
  if (status == CUDNN_STATUS_NOT_SUPPORTED) return std::nullopt;
  check(api, status, question.what);
  const Performance* const best =
      choose(std::span<const Performance>(found).first(static_cast<std::size_t>(count)), narrow);
  if (best == nullptr) return std::nullopt;
  // Of binary32 tensors the default math type would allow TF32.
  ChosenAlgorithm<Algorithm> chosen{best->algo, name_of(best->algo),
                                    narrow ? best->mathType : CUDNN_FMA_MATH, compute, 0};
  // Asked again: what the list says holds for its own math type.
  const ConvolutionDescriptor used(api, key.conv, compute, chosen.math);
  check(api, question.workspace(used, chosen.algorithm, &chosen.workspace), question.what);
  return chosen;
}

/// Sums in the tensors' own type where that is asked for and cuDNN has it, else in binary32.
template <class Algorithm, class Performance>
ChosenAlgorithm<Algorithm> plan(const CudnnApi& api, const ConvolutionKey& key,
                                Accumulation accumulation,
                                const Question<Algorithm, Performance>& question) {
  if (accumulation == Accumulation::fp16 && key.dtype == Dtype::f16) {
    if (auto chosen = ask(api, key, CUDNN_DATA_HALF, question)) return *chosen;
  }
  if (auto chosen = ask(api, key, CUDNN_DATA_FLOAT, question)) return *chosen;
  throw std::runtime_error(fmt::format(
      "cuDNN has no deterministic algorithm for {}, x {}, w {}, stride {}, padding {}, {}",
      question.what, key.x, key.w, key.conv.stride, key.conv.padding,
      halfscope::name_of(key.dtype)));
}

template <class Algorithm>
nlohmann::json json_of(const ChosenAlgorithm<Algorithm>& chosen) {
  return {{"algorithm", chosen.name},
          {"math", name_of(chosen.math)},
          {"compute", chosen.compute == CUDNN_DATA_HALF ? "F16" : "F32"},
          {"workspace_bytes", chosen.workspace}};
}

}  // namespace

ConvolutionPlan::ConvolutionPlan(const CudnnApi& api, cudnnHandle_t handle,
                                 const ConvolutionKey& key_, Accumulation accumulation)
    : key(key_), x(api, key.dtype, key.x), y(api, key.dtype, key.y()), w(api, key.dtype, key.w) {
  using Forward = Question<cudnnConvolutionFwdAlgo_t, cudnnConvolutionFwdAlgoPerf_t>;
  forward = plan(api, key, accumulation,
                 Forward{"cudnnConvolutionForward",
                         [&](auto conv, int most, int* count, auto* found) {
                           return api.cudnnGetConvolutionForwardAlgorithm_v7(handle, x, w, conv, y,
                                                                             most, count, found);
                         },
                         [&](auto conv, auto algorithm, std::size_t* bytes) {
                           return api.cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, conv, y,
                                                                              algorithm, bytes);
                         }});
  using Data = Question<cudnnConvolutionBwdDataAlgo_t, cudnnConvolutionBwdDataAlgoPerf_t>;
  data_gradient = plan(api, key, accumulation,
                       Data{"cudnnConvolutionBackwardData",
                            [&](auto conv, int most, int* count, auto* found) {
                              return api.cudnnGetConvolutionBackwardDataAlgorithm_v7(
                                  handle, w, y, conv, x, most, count, found);
                            },
                            [&](auto conv, auto algorithm, std::size_t* bytes) {
                              return api.cudnnGetConvolutionBackwardDataWorkspaceSize(
                                  handle, w, y, conv, x, algorithm, bytes);
                            }});
  using Weights = Question<cudnnConvolutionBwdFilterAlgo_t, cudnnConvolutionBwdFilterAlgoPerf_t>;
  weight_gradient = plan(api, key, accumulation,
                         Weights{"cudnnConvolutionBackwardFilter",
                                 [&](auto conv, int most, int* count, auto* found) {
                                   return api.cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                                       handle, x, y, conv, w, most, count, found);
                                 },
                                 [&](auto conv, auto algorithm, std::size_t* bytes) {
                                   return api.cudnnGetConvolutionBackwardFilterWorkspaceSize(
                                       handle, x, y, conv, w, algorithm, bytes);
                                 }});
}

nlohmann::json ConvolutionPlan::to_json() const {
  return {{"x", key.x},
          {"w", key.w},
          {"stride", key.conv.stride},
          {"padding", key.conv.padding},
          {"dtype", halfscope::name_of(key.dtype)},
          {"fprop", json_of(forward)},
          {"dgrad", json_of(data_gradient)},
          {"wgrad", json_of(weight_gradient)}};
}

}  // namespace halfscope::sim
