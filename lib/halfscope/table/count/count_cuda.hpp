// SPDX-License-Identifier: Apache-2.0
// Twins of count.hpp on a CUDA device: many tensors in one pass. Nothing here waits but get() and
// destructors. Link halfscope::cuda. README.md beside this file, "On the GPU".
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "halfscope/table/count/count.hpp"
#include "halfscope/table/count/cuda_parts.hpp"

namespace halfscope::cuda {

/// Tables equal count_binades()'s to the last count. Moments are of finite values, in binary64, in
/// an order that is the same on every device but not that of halfscope::moments().
struct TensorFacts {
  BinadeTable table;
  Moments moments;
};

/// From here on a 16-bit tensor is counted by whole encodings: fewer instructions an element, but
/// a fixed cost. To be tuned.
inline constexpr std::int64_t kEncodingsFrom = std::int64_t{1} << 25;

/// Queues the counting on a stream. The tensors must stay as they are until it is done.
class TableCount {
 public:
  /// Throws std::invalid_argument that names the tensor where its dtype is not f16, bf16 or f32 or
  /// its count is negative, and std::runtime_error that names the CUDA call that failed.
  TableCount(std::span<const DeviceTensor> tensors, cudaStream_t stream,
             std::int64_t encodings_from = kEncodingsFrom);
  TableCount(TableCount&&) noexcept;
  ~TableCount();

  /// Waits; one a tensor.
  std::vector<TensorFacts> get();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What every step's decision needs of a tensor.
struct GradientSums {
  bool nan = false, infinity = false;
  double max_abs = 0;      ///< infinite where an element is; NaNs are skipped
  double sum_squares = 0;  ///< of the finite ones; binary64, the same on every device
};

/// The same for these alone: one launch, no table.
class FactsCount {
 public:
  FactsCount(std::span<const DeviceTensor> tensors, cudaStream_t stream);
  FactsCount(FactsCount&&) noexcept;
  ~FactsCount();

  /// Waits; one a tensor.
  std::vector<GradientSums> get();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace halfscope::cuda
