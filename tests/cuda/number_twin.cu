// SPDX-License-Identifier: Apache-2.0
#include "cuda/number_twin.hpp"

#include <cuda_fp16.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace twin {
namespace {

using halfscope::Rounded;
using halfscope::Rounding;

// The headers are for device code as they are: no relaxed constexpr, format rows by name.
template <halfscope::Format kTo, halfscope::Format kFrom>
__device__ Rounded by_template(std::uint64_t bits) {
  return halfscope::convert(kTo, kFrom, bits);
}

__global__ void convert_each(Conversion c, const std::uint64_t* in, Rounded* out,
                             std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) out[i] = halfscope::convert(c.to, c.from, in[i], c.mode, c.tininess);
}

__host__ __device__ unsigned encoding(__half h) { return __half_raw(h).x; }

__host__ __device__ bool is_nan(std::uint32_t bits) { return (bits & 0x7FFFFFFFu) > 0x7F800000u; }

__host__ __device__ int differences(std::uint32_t bits) {
  if (is_nan(bits)) return 0;
  const float x = halfscope::detail::bit_cast<float>(bits);
  const auto ours = [x](Rounding mode) {
    return halfscope::from_float(halfscope::kBinary16, x, mode).bits;
  };
  return (ours(Rounding::ties_to_even) != encoding(__float2half_rn(x))) +
         (ours(Rounding::toward_zero) != encoding(__float2half_rz(x))) +
         (ours(Rounding::upward) != encoding(__float2half_ru(x))) +
         (ours(Rounding::downward) != encoding(__float2half_rd(x)));
}

__global__ void count_differences(std::uint64_t stride, unsigned long long* total) {
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  unsigned long long mine = 0;
  for (std::uint64_t i = thread * stride; i < std::uint64_t{1} << 32; i += threads * stride) {
    const auto bits = static_cast<std::uint32_t>(i);
    mine += static_cast<unsigned>(differences(bits));
    const Rounded half = by_template<halfscope::kBinary16, halfscope::kBinary32>(bits);
    const Rounded wide = by_template<halfscope::kBinary32, halfscope::kBinary16>(half.bits);
    const bool back = half.flags.inexact || wide.bits == bits || is_nan(bits);
    mine += wide.flags == halfscope::Flags{} && back ? 0 : 1;
  }
  if (mine != 0) atomicAdd(total, mine);
}

void check(cudaError_t status) {
  if (status != cudaSuccess) throw std::runtime_error(cudaGetErrorString(status));
}

struct Free {
  void operator()(void* p) const { cudaFree(p); }
};

template <typename T>
std::unique_ptr<T, Free> allocate(std::size_t count) {
  void* p = nullptr;
  check(cudaMalloc(&p, count * sizeof(T)));
  return std::unique_ptr<T, Free>(static_cast<T*>(p));
}

}  // namespace

bool has_device() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess && count > 0;
}

std::vector<Rounded> on_host(const Conversion& c, const std::vector<std::uint64_t>& in) {
  std::vector<Rounded> out;
  for (const std::uint64_t bits : in) {
    out.push_back(halfscope::convert(c.to, c.from, bits, c.mode, c.tininess));
  }
  return out;
}

std::vector<Rounded> on_device(const Conversion& c, const std::vector<std::uint64_t>& in) {
  const auto device_in = allocate<std::uint64_t>(in.size());
  const auto device_out = allocate<Rounded>(in.size());
  check(cudaMemcpy(device_in.get(), in.data(), in.size() * sizeof(in[0]), cudaMemcpyHostToDevice));
  const auto blocks = static_cast<unsigned>((in.size() + 255) / 256);
  convert_each<<<blocks, 256>>>(c, device_in.get(), device_out.get(), in.size());
  check(cudaGetLastError());
  std::vector<Rounded> out(in.size());
  check(cudaMemcpy(out.data(), device_out.get(), out.size() * sizeof(out[0]),
                   cudaMemcpyDeviceToHost));
  return out;
}

std::uint64_t differences_to_cuda_host(std::uint64_t stride) {
  std::uint64_t total = 0;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << 32; i += stride) {
    total += static_cast<unsigned>(differences(static_cast<std::uint32_t>(i)));
  }
  return total;
}

std::uint64_t differences_to_cuda_device(std::uint64_t stride) {
  const auto total = allocate<unsigned long long>(1);
  check(cudaMemset(total.get(), 0, sizeof(unsigned long long)));
  count_differences<<<1024, 256>>>(stride, total.get());
  check(cudaGetLastError());
  unsigned long long found = 0;
  check(cudaMemcpy(&found, total.get(), sizeof found, cudaMemcpyDeviceToHost));
  return found;
}

}  // namespace twin
