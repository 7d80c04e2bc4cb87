// SPDX-License-Identifier: Apache-2.0
// The functions of the CUDA runtime that we call, for streams, events, errors and launches.
#include <cuda_runtime_api.h>

#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "cuda/emulated/device.hpp"
#include "cuda/emulated/failed.hpp"
#include "cuda/emulated/limits.hpp"
#include "cuda/emulated/memory.hpp"
#include "cuda/emulated/stream.hpp"
#include "halfscope/device/runtime.hpp"

using namespace halfscope::emulated;

// CUDA's name of what a cudaEvent_t points to.
struct CUevent_st {
  std::shared_ptr<EventState> state = std::make_shared<EventState>();
};

namespace {

std::mutex events_mutex;  // another thread may wait for results

std::set<cudaEvent_t>& events() {
  static std::set<cudaEvent_t>& all = *new std::set<cudaEvent_t>;
  return all;
}

bool is_event(cudaEvent_t event) {
  const std::lock_guard lock(events_mutex);
  return events().count(event) != 0;
}

thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

namespace halfscope::emulated {

cudaError_t failed(cudaError_t status) {
  if (status != cudaSuccess) last_error = status;
  return status;
}

void check_launch(const char* name, unsigned threads, std::size_t shared) {
  const auto most_shared = static_cast<std::size_t>(kMostShared);
  cuda::check(shared > most_shared ? cudaErrorInvalidValue : cudaSuccess, name);
  const bool possible = threads >= 1 && threads <= static_cast<unsigned>(kMostThreads);
  cuda::check(possible ? cudaSuccess : cudaErrorInvalidConfiguration, name);
}

/// A pointer behind the last element is no error by itself: there may be nothing to do.
void check_argument(const char* name, std::size_t position, const void* argument) {
  const bool known = argument == nullptr || inside(argument, 0, Space::device) ||
                     inside(argument, 0, Space::pinned);
  if (known) return;
  throw std::runtime_error("emulated device: " + std::string(name) + ": argument " +
                           std::to_string(position) + " points to no memory of the device");
}

}  // namespace halfscope::emulated

// Errors.

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "cudaSuccess";
    case cudaErrorInvalidValue: return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration";
    case cudaErrorInvalidMemcpyDirection: return "cudaErrorInvalidMemcpyDirection";
    case cudaErrorInvalidDevice: return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle: return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady: return "cudaErrorNotReady";
    case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure";
    default: return "unrecognized error code";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorInvalidConfiguration: return "invalid configuration argument";
    case cudaErrorInvalidMemcpyDirection: return "invalid copy direction for memcpy";
    case cudaErrorInvalidDevice: return "invalid device ordinal";
    case cudaErrorInvalidResourceHandle: return "invalid resource handle";
    case cudaErrorNotReady: return "device not ready";
    case cudaErrorLaunchFailure: return "unspecified launch failure";
    default: return "unrecognized error code";
  }
}

// Streams.

cudaError_t cudaStreamCreate(cudaStream_t* out) {
  *out = create_stream(true);
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* out, unsigned flags) {
  if ((flags & ~unsigned{cudaStreamNonBlocking}) != 0) return failed(cudaErrorInvalidValue);
  *out = create_stream(flags == cudaStreamDefault);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) { return failed(destroy_stream(stream)); }

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return failed(is_stream(stream) ? drain(stream) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaDeviceSynchronize() { return failed(drain_all()); }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (!is_stream(stream) || !is_event(event)) return failed(cudaErrorInvalidResourceHandle);
  enqueue(stream, [state = event->state, until = event->state->recorded] { wait(*state, until); });
  return cudaSuccess;
}

// Events.

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* out, unsigned flags) {
  *out = new CUevent_st;
  (*out)->state->timed = (flags & cudaEventDisableTiming) == 0;
  const std::lock_guard lock(events_mutex);
  events().insert(*out);
  count_object(1);
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* out) {
  return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (!is_event(event)) return failed(cudaErrorInvalidResourceHandle);
  const std::lock_guard lock(events_mutex);
  events().erase(event);
  delete event;
  count_object(-1);
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return failed(is_event(event) ? record(event->state, stream) : cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (!is_event(event)) return failed(cudaErrorInvalidResourceHandle);
  return failed(wait(*event->state, event->state->recorded));
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (!is_event(event)) return failed(cudaErrorInvalidResourceHandle);
  return event->state->passed >= event->state->recorded ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  for (const cudaEvent_t event : {start, end}) {
    if (!is_event(event)) return failed(cudaErrorInvalidResourceHandle);
    const EventState& state = *event->state;
    if (!state.timed || state.recorded == 0) return failed(cudaErrorInvalidResourceHandle);
    if (state.passed < state.recorded) return failed(cudaErrorNotReady);
  }
  *milliseconds = static_cast<float>(end->state->milliseconds - start->state->milliseconds);
  return cudaSuccess;
}
