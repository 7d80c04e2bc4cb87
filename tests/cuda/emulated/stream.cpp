// SPDX-License-Identifier: Apache-2.0
#include "cuda/emulated/stream.hpp"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "cuda/emulated/device.hpp"

// CUDA's name of what a cudaStream_t points to.
struct CUstream_st {
  bool blocking = true;  ///< the null stream waits for it
  std::deque<std::function<void()>> queue;
};

namespace halfscope::emulated {
namespace {

std::set<cudaStream_t>& streams() {
  static std::set<cudaStream_t>& all = *new std::set<cudaStream_t>;
  return all;
}

bool& is_deferred() {
  static bool value = [] {
    const char* said = std::getenv("HALFSCOPE_EMULATED_STREAMS");
    return said != nullptr && std::string(said) == "deferred";
  }();
  return value;
}

bool is_null(cudaStream_t stream) { return stream == nullptr || stream == cudaStreamLegacy; }

template <class Until>
cudaError_t drain_until(cudaStream_t stream, Until until) {
  cudaError_t out = cudaSuccess;
  if (is_null(stream) || !is_stream(stream)) return out;
  while (!stream->queue.empty() && !until()) {
    const std::function<void()> work = std::move(stream->queue.front());
    stream->queue.pop_front();
    try {
      work();
    } catch (const std::exception& error) {
      report_problem(error.what());
      out = cudaErrorLaunchFailure;
    }
  }
  return out;
}

std::atomic<std::size_t> objects = 0;

}  // namespace

bool is_stream(cudaStream_t stream) { return is_null(stream) || streams().count(stream) != 0; }
bool deferred() { return is_deferred(); }

void set_deferred(bool deferred) {
  drain_all();
  is_deferred() = deferred;
}

void enqueue(cudaStream_t stream, std::function<void()> work) {
  if (!is_stream(stream)) throw std::runtime_error("emulated device: work for what is no stream");
  if (deferred() && !is_null(stream)) {
    stream->queue.push_back(std::move(work));
    return;
  }
  if (is_null(stream)) {
    for (const cudaStream_t other : streams()) {
      if (other->blocking) drain(other);
    }
  }
  work();
}

cudaError_t drain(cudaStream_t stream) {
  return drain_until(stream, [] { return false; });
}

cudaError_t drain_all() {
  cudaError_t out = cudaSuccess;
  for (const cudaStream_t stream : streams()) {
    const cudaError_t status = drain(stream);
    if (status != cudaSuccess) out = status;
  }
  return out;
}

cudaStream_t create_stream(bool blocking) {
  auto* out = new CUstream_st{blocking, {}};
  streams().insert(out);
  count_object(1);
  return out;
}

cudaError_t destroy_stream(cudaStream_t stream) {
  if (is_null(stream) || !is_stream(stream)) return cudaErrorInvalidResourceHandle;
  const cudaError_t status = drain(stream);
  streams().erase(stream);
  delete stream;
  count_object(-1);
  return status;
}

cudaError_t record(const std::shared_ptr<EventState>& event, cudaStream_t stream) {
  if (!is_stream(stream)) return cudaErrorInvalidResourceHandle;
  event->stream = stream;
  const std::uint64_t mark = ++event->recorded;
  enqueue(stream, [=] {
    event->passed = mark;
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    event->milliseconds = std::chrono::duration<double, std::milli>(now).count();
  });
  return cudaSuccess;
}

cudaError_t wait(const EventState& event, std::uint64_t until) {
  return drain_until(event.stream, [&] { return event.passed >= until; });
}

void count_object(int change) { objects += static_cast<std::size_t>(change); }
std::size_t objects_alive() { return objects; }

}  // namespace halfscope::emulated
