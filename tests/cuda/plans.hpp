// SPDX-License-Identifier: Apache-2.0
// Which of cuDNN's engines can compute a convolution on a device: found by its heuristics, and each
// planned to the end. Needs no device.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cuda/graph_api.hpp"
#include "cuda/shape_backend.hpp"

namespace halfscope::test {

struct Engine {
  std::int64_t index = 0, workspace = 0;  ///< of the plan, in bytes
  bool deterministic = true, tensor_core = false, run_time_compiled = false;
  bool planned = false;  ///< an execution plan was made
};

/// What a device can do for a convolution.
class Planner {
 public:
  /// Properties as cuDNN's JSON.
  explicit Planner(const std::string& properties) : device_(device_properties(properties)) {}

  /// The engines that heuristic A and the fallback name, in that order, once each, with one of
  /// `wanted`'s answer true planned (the others are only told of). NHWC, sums in binary32.
  std::vector<Engine> engines(const ConvolutionCall& call, Dtype dtype,
                              bool (*wanted)(const Engine&)) const;

 private:
  GraphDescriptor device_;
};

}  // namespace halfscope::test
