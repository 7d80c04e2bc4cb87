// SPDX-License-Identifier: Apache-2.0
// The functions of count.hpp on a CUDA device, for many tensors in one pass. Only get() and
// destructors wait for the device. Link halfscope::cuda. README.md, "On the GPU".
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "halfscope/table/count/count.hpp"
#include "halfscope/table/count/cuda_parts.hpp"

namespace halfscope::cuda {

/// Tables equal count_binades()'s in every count. Moments are of the finite values, in binary64, in
/// an order that is the same on every device but differs from halfscope::moments()'s.
struct TensorFacts {
  BinadeTable table;
  Moments moments;
};

/// From this size on, a 16-bit tensor is counted by whole encodings: fewer instructions per
/// element, but a fixed cost. Not tuned yet.
inline constexpr std::int64_t kEncodingsFrom = std::int64_t{1} << 25;

/// Queues the counting of tensors on a stream. The tensors must not change until it is done.
class TableCount {
 public:
  /// Throws std::invalid_argument that names the tensor if its dtype is not f16, bf16 or f32 or its
  /// count is negative, and std::runtime_error that names a failed CUDA call.
  TableCount(std::span<const DeviceTensor> tensors, cudaStream_t stream,
             std::int64_t encodings_from = kEncodingsFrom);
  TableCount(TableCount&&) noexcept;
  ~TableCount();

  /// Waits and returns the results, one per tensor.
  std::vector<TensorFacts> get();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Facts about a tensor that every training step needs.
struct GradientSums {
  bool nan = false, infinity = false;
  double max_abs = 0;      ///< infinite if any element is; NaNs are skipped
  double sum_squares = 0;  ///< sum over the finite elements; binary64, the same on every device
};

/// Queues the computation of GradientSums alone: one launch, no tables.
class FactsCount {
 public:
  FactsCount(std::span<const DeviceTensor> tensors, cudaStream_t stream);
  FactsCount(FactsCount&&) noexcept;
  ~FactsCount();

  /// Waits and returns the results, one per tensor.
  std::vector<GradientSums> get();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace halfscope::cuda
