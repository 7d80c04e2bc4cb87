// SPDX-License-Identifier: Apache-2.0
// A convolution as its descriptors say, and the algorithms there are for it.
#pragma once

#include "cuda/emulated/library_calls.hpp"

namespace halfscope::emulated {

struct ConvolutionCall {
  Layout x, w, y;
  int padding_h = 0, padding_w = 0, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;

  /// Refuses descriptors that do not fit together, and what no algorithm is for.
  ConvolutionCall(cudnnTensorDescriptor_t x, cudnnFilterDescriptor_t w,
                  cudnnConvolutionDescriptor_t convolution, cudnnTensorDescriptor_t y);

  /// TF32 products, as the math type allows for binary32.
  bool uses_tf32() const { return x.type == Type::f32 && math != CUDNN_FMA_MATH; }
};

/// What an algorithm is here; the same for all three operations but for its number.
struct Algorithm {
  int number;
  bool deterministic;
  std::size_t memory;  ///< as the list says; the workspace is a little more
};
constexpr std::size_t kMoreWorkspace = 512;

std::vector<Algorithm> forward_algorithms(const ConvolutionCall& call);
std::vector<Algorithm> data_algorithms(const ConvolutionCall& call);
std::vector<Algorithm> filter_algorithms(const ConvolutionCall& call);

/// The one of this number; refuses others. `workspace`: what the caller gives, which is written.
Algorithm checked(const std::vector<Algorithm>& known, int number, void* workspace,
                  std::size_t bytes);

}  // namespace halfscope::emulated
