// SPDX-License-Identifier: Apache-2.0
#include "cuda/hardware.hpp"

#include <cuda_fp16.h>

#include "cuda/device.hpp"
#include "halfscope/number/bits.hpp"
#include "halfscope/number/cuda_half.hpp"

namespace hardware {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::size_t kEncodings = 0x10000;

__device__ __half half_of(std::uint16_t bits) {
  __half_raw raw;
  raw.x = bits;
  return __half(raw);
}

__device__ std::uint16_t encoding(__half h) { return static_cast<__half_raw>(h).x; }

__device__ __half apply(Unary function, __half x) {
  switch (function) {
    case Unary::rcp: return hrcp(x);
    case Unary::sqrt: return hsqrt(x);
    case Unary::rsqrt: return hrsqrt(x);
    case Unary::exp: return hexp(x);
    case Unary::exp2: return hexp2(x);
    case Unary::exp10: return hexp10(x);
    case Unary::log: return hlog(x);
    case Unary::log2: return hlog2(x);
    case Unary::log10: return hlog10(x);
    case Unary::tanh: return htanh(x);
    case Unary::tanh_approx: return htanh_approx(x);
    case Unary::sin: return hsin(x);
    case Unary::cos: return hcos(x);
  }
  return half_of(0);
}

__device__ __half apply(Operation operation, __half a, __half b, __half c) {
  switch (operation) {
    case Operation::add: return __hadd_rn(a, b);
    case Operation::add_sat: return __hadd_sat(a, b);
    case Operation::sub: return __hsub_rn(a, b);
    case Operation::sub_sat: return __hsub_sat(a, b);
    case Operation::mul: return __hmul_rn(a, b);
    case Operation::mul_sat: return __hmul_sat(a, b);
    case Operation::div: return __hdiv(a, b);
    case Operation::max: return __hmax(a, b);
    case Operation::min: return __hmin(a, b);
    case Operation::max_nan: return __hmax_nan(a, b);
    case Operation::min_nan: return __hmin_nan(a, b);
    case Operation::fma: return __hfma(a, b, c);
    case Operation::fma_sat: return __hfma_sat(a, b, c);
    case Operation::fma_relu: return __hfma_relu(a, b, c);
  }
  return a;
}

__global__ void unary_kernel(Unary function, std::uint16_t* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kEncodings) {
    out[i] = encoding(apply(function, half_of(static_cast<std::uint16_t>(i))));
  }
}

__global__ void float_kernel(std::uint32_t* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kEncodings) {
    const float x = __half2float(half_of(static_cast<std::uint16_t>(i)));
    out[i] = halfscope::detail::bit_cast<std::uint32_t>(x);
  }
}

__global__ void each_kernel(Operation operation, const Operands* in, std::uint16_t* out,
                            std::size_t count) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const Operands o = in[i];
  out[i] = encoding(apply(operation, half_of(o.a), half_of(o.b), half_of(o.c)));
}

__device__ unsigned differences(float x) {
  namespace ours = halfscope::cuda_half;
  return (ours::float2half_rn(x) != encoding(__float2half_rn(x)) ? 1U : 0U) +
         (ours::float2half_rz(x) != encoding(__float2half_rz(x)) ? 1U : 0U) +
         (ours::float2half_ru(x) != encoding(__float2half_ru(x)) ? 1U : 0U) +
         (ours::float2half_rd(x) != encoding(__float2half_rd(x)) ? 1U : 0U);
}

__global__ void count_kernel(unsigned long long* total) {
  const std::uint64_t thread = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::uint64_t threads = std::uint64_t{gridDim.x} * blockDim.x;
  unsigned long long mine = 0;
  for (std::uint64_t i = thread; i < std::uint64_t{1} << 32; i += threads) {
    mine += differences(halfscope::detail::bit_cast<float>(static_cast<std::uint32_t>(i)));
  }
  if (mine != 0) atomicAdd(total, mine);
}

}  // namespace

std::vector<std::uint16_t> all(Unary function) {
  const auto out = device::allocate<std::uint16_t>(kEncodings);
  unary_kernel<<<device::blocks_for(kEncodings, kThreads), kThreads>>>(function, out.get());
  device::check(cudaGetLastError());
  return device::fetch(out.get(), kEncodings);
}

std::vector<std::uint32_t> all_as_float() {
  const auto out = device::allocate<std::uint32_t>(kEncodings);
  float_kernel<<<device::blocks_for(kEncodings, kThreads), kThreads>>>(out.get());
  device::check(cudaGetLastError());
  return device::fetch(out.get(), kEncodings);
}

std::vector<std::uint16_t> each(Operation operation, const std::vector<Operands>& in) {
  const auto operands = device::copy_of(in);
  const auto out = device::allocate<std::uint16_t>(in.size());
  each_kernel<<<device::blocks_for(in.size(), kThreads), kThreads>>>(operation, operands.get(),
                                                                     out.get(), in.size());
  device::check(cudaGetLastError());
  return device::fetch(out.get(), in.size());
}

std::uint64_t narrowing_differences() {
  const auto total = device::copy_of(std::vector<unsigned long long>{0});
  count_kernel<<<4096, kThreads>>>(total.get());
  device::check(cudaGetLastError());
  return device::fetch(total.get(), 1).front();
}

}  // namespace hardware
