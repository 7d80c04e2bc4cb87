// SPDX-License-Identifier: Apache-2.0
// Streams and events of the emulated device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace halfscope::emulated {

bool is_stream(cudaStream_t stream);

/// Runs the work now, or where streams are deferred and this is not the null stream, when the
/// stream is waited for. Throws std::runtime_error for what is no stream.
void enqueue(cudaStream_t stream, std::function<void()> work);

/// Run what is queued on this stream, or on all. What the work throws is a problem, and the answer.
cudaError_t drain(cudaStream_t stream);
cudaError_t drain_all();

bool deferred();

cudaStream_t create_stream(bool blocking);
cudaError_t destroy_stream(cudaStream_t stream);

struct EventState {
  bool timed = false;
  cudaStream_t stream = nullptr;
  std::uint64_t recorded = 0, passed = 0;
  double milliseconds = 0;  ///< when it was passed
};

cudaError_t record(const std::shared_ptr<EventState>& event, cudaStream_t stream);
cudaError_t wait(const EventState& event, std::uint64_t until);

/// Of what objects_alive() counts.
void count_object(int change);

}  // namespace halfscope::emulated
