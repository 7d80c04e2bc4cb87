// SPDX-License-Identifier: Apache-2.0
// The scalar operations as nvcc compiles them, for the host and for the device, without relaxed
// constexpr. The library's namespace is renamed: see every_operation.hpp.
#define halfscope halfscope_by_nvcc
#include "cuda/device.hpp"
#include "cuda/every_operation.hpp"

namespace twin {
namespace {

__global__ void run_each(const Call* calls, Outcome* out, std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) out[i] = halfscope::every::outcome(calls[i]);
}

}  // namespace

std::vector<Outcome> by_nvcc_on_host(const std::vector<Call>& calls) {
  std::vector<Outcome> out;
  out.reserve(calls.size());
  for (const Call& c : calls) out.push_back(halfscope::every::outcome(c));
  return out;
}

std::vector<Outcome> on_device(const std::vector<Call>& calls) {
  const auto in = device::copy_of(calls);
  const auto out = device::allocate<Outcome>(calls.size());
  constexpr unsigned kThreads = 128;
  run_each<<<device::blocks_for(calls.size(), kThreads), kThreads>>>(in.get(), out.get(),
                                                                     calls.size());
  device::check(cudaGetLastError());
  return device::fetch(out.get(), calls.size());
}

}  // namespace twin
