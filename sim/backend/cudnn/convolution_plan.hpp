// SPDX-License-Identifier: Apache-2.0
// The algorithms that compute a convolution and its gradients. All are deterministic. They use
// Tensor Cores for 16-bit tensors, and true binary32 (no TF32) for binary32 tensors. cuDNN's
// heuristic chooses them without timing, so the choice is always the same.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <tuple>

#include "sim/backend/cudnn/descriptors.hpp"
#include "sim/backend/precision.hpp"

namespace halfscope::sim::backend::cudnn {

/// The algorithm of one of a convolution's three operations.
template <class Algorithm>
struct ChosenAlgorithm {
  Algorithm algorithm{};
  std::string name;  ///< the enumerator's name in cuDNN, without its prefix
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  std::size_t workspace = 0;  ///< bytes
};

/// Key of a plan: all that the choice of algorithms depends on.
struct ConvolutionKey {
  Convolution conv;
  Shape x, w;
  Dtype dtype = Dtype::f32;

  Shape y() const { return {x[0], conv.out(x[1]), conv.out(x[2]), w[0]}; }
  friend bool operator<(const ConvolutionKey& a, const ConvolutionKey& b) {
    const auto all = [](const ConvolutionKey& k) {
      return std::tie(k.conv.kernel, k.conv.stride, k.conv.padding, k.x, k.w, k.dtype);
    };
    return all(a) < all(b);
  }
};

class ConvolutionPlan {
 public:
  ConvolutionPlan(const CudnnApi& api, cudnnHandle_t handle, const ConvolutionKey& key,
                  Accumulation accumulation);

  // Each function chooses the algorithm at its first call. Throws std::runtime_error if cuDNN has
  // no deterministic algorithm.
  const ChosenAlgorithm<cudnnConvolutionFwdAlgo_t>& forward();
  const ChosenAlgorithm<cudnnConvolutionBwdDataAlgo_t>& data_gradient();
  const ChosenAlgorithm<cudnnConvolutionBwdFilterAlgo_t>& weight_gradient();

  /// Returns all three algorithms, and chooses those that are not chosen yet.
  nlohmann::json to_json();

  const ConvolutionKey key;
  const TensorDescriptor x, y;
  const FilterDescriptor w;

 private:
  const CudnnApi& api_;
  cudnnHandle_t handle_;
  Accumulation accumulation_;
  std::optional<ChosenAlgorithm<cudnnConvolutionFwdAlgo_t>> forward_;
  std::optional<ChosenAlgorithm<cudnnConvolutionBwdDataAlgo_t>> data_gradient_;
  std::optional<ChosenAlgorithm<cudnnConvolutionBwdFilterAlgo_t>> weight_gradient_;
};

}  // namespace halfscope::sim::backend::cudnn
