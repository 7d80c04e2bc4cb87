// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/cudnn/convolution_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace halfscope::sim::backend::cudnn {
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

// Returns true if the algorithm (Winograd, FFT) transforms its inputs, and so rounds them first.
bool transforms(cudnnConvolutionFwdAlgo_t a) { return a >= CUDNN_CONVOLUTION_FWD_ALGO_FFT; }
bool transforms(cudnnConvolutionBwdDataAlgo_t a) {
  return a >= CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT;
}
bool transforms(cudnnConvolutionBwdFilterAlgo_t a) {
  return a != CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 && a != CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 &&
         a != CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3;
}

// Algorithms that NVIDIA's documentation calls non-deterministic; cuDNN's lists also say so.
bool adds_in_any_order(cudnnConvolutionFwdAlgo_t) { return false; }
bool adds_in_any_order(cudnnConvolutionBwdDataAlgo_t a) {
  return a == CUDNN_CONVOLUTION_BWD_DATA_ALGO_0;
}
bool adds_in_any_order(cudnnConvolutionBwdFilterAlgo_t a) {
  return a == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 || a == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3;
}

/// Returns the allowed algorithms: deterministic, and without Tensor Cores for binary32. Algorithms
/// that do not transform their inputs are first; among them, for 16-bit tensors, those on Tensor
/// Cores. Within these groups the order is cuDNN's, by expected speed.
template <class Performance>
std::vector<Performance> usable(std::span<const Performance> found, bool narrow) {
  std::vector<Performance> list;
  for (const Performance& p : found) {
    const bool deterministic = p.determinism == CUDNN_DETERMINISTIC && !adds_in_any_order(p.algo);
    const bool allowed = narrow || !on_tensor_cores(p.mathType);
    if (p.status == CUDNN_STATUS_SUCCESS && deterministic && allowed) list.push_back(p);
  }
  std::ranges::stable_sort(list, {}, [&](const Performance& p) {
    return std::pair(transforms(p.algo), narrow && !on_tensor_cores(p.mathType));
  });
  return list;
}

/// Queries for one operation: cuDNN's list of algorithms, and the workspace of an algorithm.
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
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return std::nullopt;
  check(api, status, question.what);
  const auto given = std::span<const Performance>(found).first(static_cast<std::size_t>(count));
  for (const Performance& p : usable(given, narrow)) {
    // For binary32 tensors, cuDNN's default math type would allow TF32.
    ChosenAlgorithm<Algorithm> chosen{p.algo, name_of(p.algo), narrow ? p.mathType : CUDNN_FMA_MATH,
                                      compute, 0};
    // The list has an estimate, for its own math type. Query the real size.
    const ConvolutionDescriptor used(api, key.conv, compute, chosen.math);
    if (question.workspace(used, chosen.algorithm, &chosen.workspace) == CUDNN_STATUS_SUCCESS &&
        chosen.workspace <= kMostWorkspace) {
      return chosen;
    }
  }
  return std::nullopt;
}

/// Chooses an algorithm with FP16 sums if requested and available, else with binary32 sums.
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

/// Returns the JSON or the error: a missing algorithm may be unused (the images' gradient).
template <class Tell>
nlohmann::json told(const Tell& tell) {
  try {
    return tell();
  } catch (const std::runtime_error& error) {
    return {{"refused", error.what()}};
  }
}

}  // namespace

ConvolutionPlan::ConvolutionPlan(const CudnnApi& api, cudnnHandle_t handle,
                                 const ConvolutionKey& of, Accumulation accumulation)
    : key(of),
      x(api, key.dtype, key.x),
      y(api, key.dtype, key.y()),
      w(api, key.dtype, key.w),
      api_(api),
      handle_(handle),
      accumulation_(accumulation) {}

const ChosenAlgorithm<cudnnConvolutionFwdAlgo_t>& ConvolutionPlan::forward() {
  using Forward = Question<cudnnConvolutionFwdAlgo_t, cudnnConvolutionFwdAlgoPerf_t>;
  if (!forward_) {
    forward_ = plan(api_, key, accumulation_,
                    Forward{"cudnnConvolutionForward",
                            [&](auto conv, int most, int* count, auto* found) {
                              return api_.cudnnGetConvolutionForwardAlgorithm_v7(
                                  handle_, x, w, conv, y, most, count, found);
                            },
                            [&](auto conv, auto algorithm, std::size_t* bytes) {
                              return api_.cudnnGetConvolutionForwardWorkspaceSize(
                                  handle_, x, w, conv, y, algorithm, bytes);
                            }});
  }
  return *forward_;
}

const ChosenAlgorithm<cudnnConvolutionBwdDataAlgo_t>& ConvolutionPlan::data_gradient() {
  using Data = Question<cudnnConvolutionBwdDataAlgo_t, cudnnConvolutionBwdDataAlgoPerf_t>;
  if (!data_gradient_) {
    data_gradient_ = plan(api_, key, accumulation_,
                          Data{"cudnnConvolutionBackwardData",
                               [&](auto conv, int most, int* count, auto* found) {
                                 return api_.cudnnGetConvolutionBackwardDataAlgorithm_v7(
                                     handle_, w, y, conv, x, most, count, found);
                               },
                               [&](auto conv, auto algorithm, std::size_t* bytes) {
                                 return api_.cudnnGetConvolutionBackwardDataWorkspaceSize(
                                     handle_, w, y, conv, x, algorithm, bytes);
                               }});
  }
  return *data_gradient_;
}

const ChosenAlgorithm<cudnnConvolutionBwdFilterAlgo_t>& ConvolutionPlan::weight_gradient() {
  using Weights = Question<cudnnConvolutionBwdFilterAlgo_t, cudnnConvolutionBwdFilterAlgoPerf_t>;
  if (!weight_gradient_) {
    weight_gradient_ = plan(api_, key, accumulation_,
                            Weights{"cudnnConvolutionBackwardFilter",
                                    [&](auto conv, int most, int* count, auto* found) {
                                      return api_.cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                                          handle_, x, y, conv, w, most, count, found);
                                    },
                                    [&](auto conv, auto algorithm, std::size_t* bytes) {
                                      return api_.cudnnGetConvolutionBackwardFilterWorkspaceSize(
                                          handle_, x, y, conv, w, algorithm, bytes);
                                    }});
  }
  return *weight_gradient_;
}

nlohmann::json ConvolutionPlan::to_json() {
  return {{"x", key.x},
          {"w", key.w},
          {"stride", key.conv.stride},
          {"padding", key.conv.padding},
          {"dtype", halfscope::name_of(key.dtype)},
          {"fprop", told([&] { return json_of(forward()); })},
          {"dgrad", told([&] { return json_of(data_gradient()); })},
          {"wgrad", told([&] { return json_of(weight_gradient()); })}};
}

}  // namespace halfscope::sim::backend::cudnn
