// SPDX-License-Identifier: Apache-2.0
// The emulated device itself: kernels with known answers, and what it must find.
#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "catch.hpp"
#include "cuda/device.hpp"
#include "cuda/emulated/device.hpp"
#include "halfscope/device/launch.hpp"
#include "halfscope/device/runtime.hpp"

namespace test_emulated {

using namespace halfscope;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

/// What the call throws, or "".
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// The sum of all elements, one block: shuffles in a warp, shared memory between warps.

__device__ unsigned warp_sum(unsigned x) {
  for (int offset = 16; offset > 0; offset /= 2) x += __shfl_xor_sync(0xFFFFFFFF, x, offset);
  return x;
}

__global__ void sum_kernel(const unsigned* in, unsigned count, unsigned* out) {
  __shared__ unsigned parts[32];
  unsigned mine = 0;
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) mine += in[i];
  mine = warp_sum(mine);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = mine;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  mine = warp_sum(threadIdx.x < blockDim.x / 32 ? parts[threadIdx.x] : 0);
  if (threadIdx.x == 0) *out = mine;
}

// Numbers below 16 counted, in dynamic shared memory first.

__global__ void histogram_kernel(const unsigned* in, unsigned count, unsigned long long* out) {
  auto* bins = cuda::dynamic_shared<unsigned>();
  for (unsigned i = threadIdx.x; i < 16; i += blockDim.x) bins[i] = 0;
  __syncthreads();
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    atomicAdd(&bins[in[i]], 1);
  }
  __syncthreads();
  for (unsigned i = threadIdx.x; i < 16; i += blockDim.x) {
    atomicAdd(&out[i], static_cast<unsigned long long>(bins[i]));
  }
}

__global__ void ballot_kernel(unsigned* out) {
  const unsigned odd = __ballot_sync(0xFFFFFFFF, threadIdx.x % 2);
  const int any = __any_sync(0xFFFFFFFF, threadIdx.x == 40);
  const unsigned from_five = __shfl_sync(0xFFFFFFFF, threadIdx.x, 5);
  const unsigned next = __shfl_down_sync(0xFFFFFFFF, threadIdx.x, 1);
  out[threadIdx.x] = odd + static_cast<unsigned>(any) + 2 * from_five + 1000 * next;
}

// Wrong ones.

__global__ void deadlock_kernel() {
  if (threadIdx.x < 3) __syncthreads();
  if (threadIdx.x < 40) __shfl_sync(0xFFFFFFFF, 1, 0);
}
__global__ void two_barriers_kernel() {
  if (threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
__global__ void diverged_kernel() {
  if (threadIdx.x < 16) {
    __shfl_sync(0xFFFFFFFF, 1, 0);
  } else {
    __ballot_sync(0xFFFFFFFF, 1);
  }
}
__global__ void missing_lanes_kernel() {
  if (threadIdx.x % 32 < 31) __shfl_sync(0xFFFFFFFF, 1, 0);
}
__global__ void mask_kernel() { __shfl_sync(0xFFFF, 1, 0); }
__global__ void full_mask_kernel() { __shfl_sync(0xFFFFFFFF, 1, 0); }
__global__ void shared_overrun_kernel() { cuda::dynamic_shared<unsigned>()[blockDim.x] = 0; }
__global__ void fill_kernel(unsigned* out, unsigned count, unsigned value) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = value;
}
/// Lacks a barrier.
__global__ void race_kernel(unsigned value, unsigned* out) {
  __shared__ unsigned said;
  if (threadIdx.x == 0) said = value;
  out[threadIdx.x] = said;
}

std::vector<unsigned> counted(unsigned count, unsigned modulus) {
  std::vector<unsigned> out(count);
  for (unsigned i = 0; i < count; ++i) out[i] = i % modulus;
  return out;
}

/// Ends with what is usual.
struct OtherModes {
  OtherModes() = default;
  OtherModes(const OtherModes&) = delete;
  ~OtherModes() {
    emulated::set_order(emulated::Order::forward);
    emulated::set_deferred(false);
  }
};

/// What is left to say after a test.
void check_nothing_left() {
  CHECK(emulated::take_problems() == "");
  CHECK(emulated::bytes_allocated() == 0);
  CHECK(emulated::objects_alive() == 0);
}

std::string launch_error(void (*kernel)(), cuda::Grid grid) {
  return error_of([&] { cuda::launch("wrong", kernel, grid, nullptr); });
}

TEST_CASE("a block's sum by shuffles and shared memory", "[emulated]") {
  const auto in = counted(10007, 1000);
  const unsigned want = std::accumulate(in.begin(), in.end(), 0U);
  for (const unsigned threads : {32U, 64U, 256U, 1024U}) {
    const auto from = device::copy_of(in);
    const auto to = device::allocate<unsigned>(1);
    cuda::launch("sum", sum_kernel, {3, threads}, nullptr, from.get(), 10007U, to.get());
    CHECK(device::fetch(to.get(), 1) == std::vector<unsigned>{want});
  }
  check_nothing_left();
}

TEST_CASE("a histogram by shared atomics, over several blocks", "[emulated]") {
  const auto in = counted(5003, 16);
  std::vector<unsigned long long> want(16);
  for (const unsigned x : in) ++want[x];
  const auto from = device::copy_of(in);
  const auto to = device::allocate<unsigned long long>(16);
  cudaMemset(to.get(), 0, 128);
  const std::uint64_t before = emulated::launches();
  cuda::launch("histogram", histogram_kernel, {4, 128, 64}, nullptr, from.get(), 5003, to.get());
  CHECK(emulated::launches() == before + 1);
  CHECK(device::fetch(to.get(), 16) == want);
}

TEST_CASE("votes and shuffles give every lane its own", "[emulated]") {
  const auto to = device::allocate<unsigned>(64);
  cuda::launch("ballot", ballot_kernel, {1, 64}, nullptr, to.get());
  const auto got = device::fetch(to.get(), 64);
  for (unsigned i = 0; i < 64; ++i) {
    const unsigned next = i % 32 == 31 ? i : i + 1;
    CHECK(got[i] == 0xAAAAAAAA + i / 32 + 2 * (i / 32 * 32 + 5) + 1000 * next);
  }
}

TEST_CASE("threads that wait in vain are named", "[emulated]") {
  CHECK_THAT(launch_error(deadlock_kernel, {1, 64}),
             StartsWith("emulated device: wrong, block 0 of 1: ") &&
                 Contains("3 of 64 threads, from thread 0, wait at __syncthreads (test_emulated") &&
                 Contains("wait at __shfl_sync (test_emulated") && Contains("24 of 64 threads"));
  CHECK_THAT(launch_error(missing_lanes_kernel, {2, 64}),
             Contains("62 of 64 threads, from thread 0, wait at __shfl_sync"));
  CHECK_THAT(launch_error(two_barriers_kernel, {1, 64}),
             Contains("threads wait at different barriers"));
  CHECK_THAT(launch_error(diverged_kernel, {1, 32}),
             Contains("another lane of the warp is elsewhere"));
  CHECK_THAT(launch_error(mask_kernel, {1, 32}), Contains("with a mask that is not full"));
  CHECK_THAT(launch_error(full_mask_kernel, {1, 40}),
             Contains("in a warp of fewer than 32 threads"));
  CHECK(launch_error(full_mask_kernel, {1, 64}) == "");  // as if nothing had been
  check_nothing_left();
}

TEST_CASE("what a device would refuse to launch is refused", "[emulated]") {
  CHECK(launch_error(full_mask_kernel, {1, 0}) == "CUDA: wrong: invalid configuration argument");
  CHECK(launch_error(full_mask_kernel, {1, 1025}) == "CUDA: wrong: invalid configuration argument");
  CHECK(launch_error(full_mask_kernel, {1, 32, 227 * 1024}) == "");
  CHECK(launch_error(full_mask_kernel, {1, 32, 227 * 1024 + 1}) == "CUDA: wrong: invalid argument");
  CHECK(launch_error(full_mask_kernel, {0, 32}) == "");
  CHECK_THAT(launch_error(shared_overrun_kernel, {1, 32, 128}),
             Contains("wrote behind its dynamic shared memory"));
  CHECK_THAT(launch_error(shared_overrun_kernel, {1, 32}), Contains("asked for none"));
  unsigned on_host = 0;
  CHECK_THAT(error_of([&] {
               cuda::launch("fill", fill_kernel, {1, 32}, nullptr, &on_host, 1U, 2U);
             }),
             Contains("fill: argument 0 points to no memory of the device"));
}

TEST_CASE("a missing barrier shows in one of the two orders", "[emulated]") {
  const OtherModes then_forward_again;
  const auto to = device::allocate<unsigned>(64);
  emulated::set_order(emulated::Order::forward);
  cuda::launch("race", race_kernel, {1, 64}, nullptr, 7U, to.get());
  CHECK(device::fetch(to.get(), 64) == std::vector<unsigned>(64, 7));
  emulated::set_order(emulated::Order::backward);
  cuda::launch("race", race_kernel, {1, 64}, nullptr, 8U, to.get());
  std::vector<unsigned> stale(64, 7);
  stale[0] = 8;
  CHECK(device::fetch(to.get(), 64) == stale);
}

TEST_CASE("fresh memory is NaN, and copies stay inside one allocation", "[emulated]") {
  {
    const auto a = device::allocate<unsigned>(4);
    CHECK(device::fetch(a.get(), 4) == std::vector<unsigned>(4, 0xFFFFFFFF));
    unsigned host[8] = {};
    CHECK(cudaMemcpy(host, a.get(), 17, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(host, host + 4, 16, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(host, a.get(), 16, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemcpy(a.get() + 1, host, 16, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaMemset(a.get() + 1, 0, 16) == cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == cudaErrorInvalidValue);
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(emulated::on_device(a.get() + 1, 12));
    CHECK_FALSE(emulated::on_device(a.get() + 1, 13));
    CHECK_FALSE(emulated::on_device(host, 1));
    CHECK(emulated::bytes_allocated() == 16);
  }
  void* huge = nullptr;
  CHECK(cudaMalloc(&huge, std::size_t{5} << 30) == cudaErrorMemoryAllocation);
  check_nothing_left();
}

TEST_CASE("writes outside, late writes and wrong frees are problems", "[emulated]") {
  unsigned* p = nullptr;
  device::check(cudaMalloc(reinterpret_cast<void**>(&p), 16));
  cuda::launch("fill", fill_kernel, {1, 32}, nullptr, p, 5U, 1U);
  CHECK(emulated::take_problems() == "written behind device memory of 16 bytes\n");
  p[-1] = 3;
  CHECK(cudaFreeHost(p) == cudaErrorInvalidValue);
  CHECK(cudaFree(p) == cudaSuccess);
  CHECK(emulated::take_problems() ==
        "freed, but not allocated as such\nwritten before device memory of 16 bytes\n");
  CHECK(cudaFree(p) == cudaErrorInvalidValue);
  CHECK(emulated::take_problems() == "freed twice\n");
  p[0] = 1;
  CHECK(emulated::take_problems() == "written after it was freed: device memory of 16 bytes\n");
  cudaGetLastError();
}

TEST_CASE("deferred streams run when they are waited for", "[emulated]") {
  const OtherModes then_at_once_again;
  emulated::set_deferred(true);
  cudaStream_t stream = nullptr;
  device::check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  {
    const cuda::DeviceMemory memory(64, stream);
    const cuda::PinnedMemory pinned(64);
    cuda::launch("fill", fill_kernel, {1, 32}, stream, memory.as<unsigned>(), 16U, 5U);
    cudaMemcpyAsync(pinned.data(), memory.data(), 64, cudaMemcpyDeviceToHost, stream);
    const cuda::Event event(stream);
    CHECK(pinned.as<unsigned>()[15] == 0xFFFFFFFF);
    event.wait();
    CHECK(pinned.as<unsigned>()[15] == 5);
    std::vector<unsigned> staged(16, 6);
    cudaMemcpyAsync(memory.data(), staged.data(), 64, cudaMemcpyHostToDevice, stream);
    staged.assign(16, 7);
    cudaMemcpyAsync(staged.data(), memory.data(), 64, cudaMemcpyDeviceToHost, stream);
    CHECK(staged == std::vector<unsigned>(16, 6));
  }
  CHECK(emulated::bytes_allocated() == 64);
  cuda::launch("mask", mask_kernel, {1, 32}, stream);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorLaunchFailure);
  CHECK_THAT(emulated::take_problems(), Contains("with a mask that is not full"));
  CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
  device::check(cudaStreamDestroy(stream));
  CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  check_nothing_left();
}

}  // namespace test_emulated
