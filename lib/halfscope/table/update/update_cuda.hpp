// SPDX-License-Identifier: Apache-2.0
// The twin of count_updates() on a CUDA device. Link halfscope::cuda. ../count/README.md,
// "On the GPU".
#pragma once

#include <cuda_runtime_api.h>

#include <memory>

#include "halfscope/table/count/cuda_parts.hpp"
#include "halfscope/table/update/update_table.hpp"

namespace halfscope::cuda {

/// Queues the counting of (weight, update) pairs on a stream; equal to count_updates() in every
/// count. UpdateOptions::threads is not used. The tensors must stay as they are until it is done.
class UpdateCount {
 public:
  /// Throws std::invalid_argument where count_updates() does, and for dtypes other than f16, bf16
  /// and f32; std::runtime_error that names the CUDA call that failed.
  UpdateCount(const DeviceTensor& weights, const DeviceTensor& updates,
              const UpdateOptions& options, cudaStream_t stream);
  UpdateCount(UpdateCount&&) noexcept;
  ~UpdateCount();

  /// Waits.
  UpdateTable get();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace halfscope::cuda
