// SPDX-License-Identifier: Apache-2.0
// The functions of count.hpp on a CUDA device, for many tensors in one launch. Only get() and
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

/// Sizes at which the work is divided. They decide only the speed; not tuned yet.
struct CountLimits {
  /// From this size on, a 16-bit tensor is counted by whole encodings: fewer instructions per
  /// element, but a fixed cost.
  std::int64_t encodings_from = std::int64_t{1} << 22;
  /// A longer tensor is counted in slices. From 1 to Slice::kMost.
  std::int64_t slice = Slice::kMost;
};

/// Queues the counting of tensors on a stream of the current device. The tensors must not change
/// until it is done, and the stream must outlive the count. A tensor needs up to 11 KB of device
/// memory and as much pinned memory, if it is counted by encodings 260 KB.
class TableCount {
 public:
  /// An open count: add() queues tensors, finish() ends it. Throws std::runtime_error that names a
  /// failed CUDA call, as all functions do.
  explicit TableCount(cudaStream_t stream, const CountLimits& limits = {});
  /// Queues one list: add() and finish().
  TableCount(std::span<const DeviceTensor> tensors, cudaStream_t stream,
             const CountLimits& limits = {});
  TableCount(TableCount&&) noexcept;
  ~TableCount();

  /// Queues the counting of tensors: one launch for all of them, and one more if the list has
  /// 16-bit tensors of limits.encodings_from elements and others. Returns the index of the first
  /// result. Throws std::invalid_argument that names the tensor if its dtype is not f16, bf16 or
  /// f32, its count is negative or its memory is null. After an exception the list
  /// has no results.
  std::size_t add(std::span<const DeviceTensor> tensors);

  /// Ends the list, so that get() waits for no work that is queued later. After it add() throws
  /// std::logic_error.
  void finish();

  /// Waits and returns the results, one per tensor. Calls finish().
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
