// SPDX-License-Identifier: Apache-2.0
// count_updates() on a CUDA device, for many tensors in one launch. Link halfscope::cuda. See
// ../count/README.md, "On the GPU".
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <span>
#include <vector>

#include "halfscope/table/count/cuda_parts.hpp"
#include "halfscope/table/update/update_table.hpp"

namespace halfscope::cuda {

/// A weight and the update that is added to it: two tensors of equal length.
struct WeightUpdate {
  DeviceTensor weights, updates;
};

/// Queues the counting of (weight, update) pairs on a stream, one launch for all tensors; equals
/// count_updates() in every count. UpdateOptions::threads is ignored. The tensors must not change
/// until it is done. With distributions, a weight needs 0.4 MB of device and of pinned memory
/// (bfloat16: 2.3 MB).
class UpdateCount {
 public:
  /// Throws std::invalid_argument as count_updates() does, and for dtypes other than f16, bf16 and
  /// f32; std::runtime_error that names a failed CUDA call.
  UpdateCount(std::span<const WeightUpdate> tensors, const UpdateOptions& options,
              cudaStream_t stream);
  UpdateCount(UpdateCount&&) noexcept;
  ~UpdateCount();

  /// Waits and returns the results, one per weight.
  std::vector<UpdateTable> get();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace halfscope::cuda
