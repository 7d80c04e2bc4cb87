// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>
#include <string>

#include "halfscope/array/array_cuda.hpp"
#include "halfscope/array/element.hpp"
#include "halfscope/array/half_instructions.hpp"
#include "halfscope/device/launch.hpp"
#include "halfscope/device/runtime.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "halfscope/number/convert.hpp"

namespace halfscope::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int kPerThread = 4;  // elements that a thread processes at a time

// Flags as TestFloat's bits.

__device__ unsigned packed(const Flags& f) {
  return (f.inexact ? 1U : 0U) | (f.underflow ? 2U : 0U) | (f.overflow ? 4U : 0U) |
         (f.divide_by_zero ? 8U : 0U) | (f.invalid ? 16U : 0U);
}

Flags unpacked(unsigned bits) {
  Flags f;
  f.inexact = (bits & 1) != 0;
  f.underflow = (bits & 2) != 0;
  f.overflow = (bits & 4) != 0;
  f.divide_by_zero = (bits & 8) != 0;
  f.invalid = (bits & 16) != 0;
  return f;
}

// Operations on element i. kFast: half_instructions.hpp applies.

struct Settings {
  Format format;
  Modes modes;
  std::uint64_t seed, first_index;

  __device__ Modes at(std::int64_t i) const {
    return element::modes_at(modes, seed, first_index + static_cast<std::uint64_t>(i));
  }
};

__device__ std::uint32_t bits_of(float x) { return halfscope::detail::bit_cast<std::uint32_t>(x); }

template <bool kFast>
struct Narrow {
  Settings settings;
  const float* in;

  __device__ Rounded operator()(std::int64_t i) const {
    if constexpr (kFast) return instructions::narrow(in[i], settings.modes);
    return halfscope::convert(settings.format, kBinary32, bits_of(in[i]), settings.at(i));
  }
};

template <bool kFast, typename In>
struct Widen {
  Settings settings;
  const In* in;

  __device__ Rounded operator()(std::int64_t i) const {
    if constexpr (kFast) return instructions::widen(in[i], settings.modes);
    return halfscope::convert(kBinary32, settings.format, in[i], settings.at(i));
  }
};

template <bool kFast>
struct Quantise {
  Settings settings;
  const float* in;

  __device__ Rounded operator()(std::int64_t i) const {
    if constexpr (kFast) {
      const Rounded half = instructions::narrow(in[i], settings.modes);
      const auto bits = static_cast<std::uint16_t>(half.bits);
      return {instructions::widen(bits, settings.modes).bits, half.flags};
    }
    return element::quantise(settings.format, bits_of(in[i]), settings.at(i));
  }
};

template <bool kFast>
struct Add {
  Settings settings;
  const std::uint16_t *a, *b;

  __device__ Rounded operator()(std::int64_t i) const {
    if constexpr (kFast) return instructions::add(a[i], b[i], settings.modes);
    return halfscope::add(settings.format, a[i], b[i], settings.at(i));
  }
};

template <bool kFast>
struct Multiply {
  Settings settings;
  const std::uint16_t *a, *b;

  __device__ Rounded operator()(std::int64_t i) const {
    if constexpr (kFast) return instructions::multiply(a[i], b[i], settings.modes);
    return halfscope::multiply(settings.format, a[i], b[i], settings.at(i));
  }
};

template <bool kFast>
struct FusedMultiplyAdd {
  Settings settings;
  const std::uint16_t *a, *b, *c;

  __device__ Rounded operator()(std::int64_t i) const {
    if constexpr (kFast) {
      return instructions::fused_multiply_add(a[i], b[i], c[i], settings.modes);
    }
    return halfscope::fused_multiply_add(settings.format, a[i], b[i], c[i], settings.at(i));
  }
};

__device__ void store(std::uint64_t bits, std::uint16_t* out) {
  *out = static_cast<std::uint16_t>(bits);
}
__device__ void store(std::uint64_t bits, std::uint8_t* out) {
  *out = static_cast<std::uint8_t>(bits);
}
__device__ void store(std::uint64_t bits, float* out) {
  *out = halfscope::detail::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

/// Returns the or over all threads of the block, which must all call it; valid in thread 0.
__device__ unsigned block_or(unsigned mine) {
  __shared__ unsigned all;
  if (threadIdx.x == 0) all = 0;
  __syncthreads();
  for (int offset = 16; offset > 0; offset /= 2) mine |= __shfl_xor_sync(0xFFFFFFFF, mine, offset);
  if (threadIdx.x % 32 == 0 && mine != 0) atomicOr(&all, mine);
  __syncthreads();
  return all;
}

/// Grid-stride loop over tiles of kThreads * kPerThread elements; neighbours in a warp access
/// neighbours in memory. All inputs of a tile are read before its outputs are written.
template <typename Operation, typename Out>
__global__ void __launch_bounds__(kThreads)
    map_elements(Operation operation, Out* out, std::int64_t count, unsigned* flags) {
  constexpr std::int64_t kTile = std::int64_t{kThreads} * kPerThread;
  unsigned raised = 0;
  for (std::int64_t tile = blockIdx.x * kTile; tile < count; tile += gridDim.x * kTile) {
    std::uint64_t results[kPerThread];
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const std::int64_t i = tile + k * static_cast<std::int64_t>(kThreads) + threadIdx.x;
      if (i >= count) continue;
      const Rounded r = operation(i);
      results[k] = r.bits;
      raised |= packed(r.flags);
    }
#pragma unroll
    for (int k = 0; k < kPerThread; ++k) {
      const std::int64_t i = tile + k * static_cast<std::int64_t>(kThreads) + threadIdx.x;
      if (i < count) store(results[k], out + i);
    }
  }
  raised = block_or(raised);
  if (threadIdx.x == 0 && raised != 0) atomicOr(flags, raised);
}

/// A word of device memory, initially zero.
class DeviceWord {
 public:
  explicit DeviceWord(cudaStream_t stream) : stream_(stream), memory_(sizeof(unsigned), stream) {
    check(cudaMemsetAsync(memory_.data(), 0, sizeof(unsigned), stream_), "cudaMemsetAsync");
  }

  unsigned* get() const { return memory_.as<unsigned>(); }

  /// Waits for the stream and returns the word.
  unsigned value() const {
    unsigned out = 0;
    check(cudaMemcpyAsync(&out, get(), sizeof out, cudaMemcpyDeviceToHost, stream_),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
    return out;
  }

 private:
  cudaStream_t stream_;
  DeviceMemory memory_;
};

/// Number of blocks that fills the device several times; the grid-stride loop processes the rest.
unsigned grid_size(std::int64_t count) {
  int device = 0, processors = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device),
        "cudaDeviceGetAttribute");
  constexpr std::int64_t kTile = std::int64_t{kThreads} * kPerThread;
  const std::int64_t tiles = (count + kTile - 1) / kTile;
  return static_cast<unsigned>(std::min(tiles, std::int64_t{processors} * 32));
}

template <typename Operation, typename Out>
Flags run(const Operation& operation, Out* out, std::int64_t count, cudaStream_t stream) {
  if (count < 0) {
    throw std::invalid_argument("halfscope::cuda: a count of " + std::to_string(count));
  }
  if (count == 0) return {};
  const unsigned blocks = grid_size(count);
  const DeviceWord flags(stream);
  launch("map_elements", map_elements<Operation, Out>, {blocks, kThreads}, stream, operation, out,
         count, flags.get());
  return unpacked(flags.value());
}

void check_storage(Format f, int bits) {
  const bool fits = bits == 8 ? f.width <= 8 : f.width > 8 && f.width <= 16;
  if (fits) return;
  throw std::invalid_argument("halfscope::cuda: encodings of " + std::to_string(f.width) +
                              " bits are not stored in " + std::to_string(bits));
}

Settings settings_of(Format f, const ArrayOptions& o) {
  return {f, o.modes, o.seed, o.first_index};
}

/// Runs Op<true> if half_instructions.hpp applies, else Op<false>.
template <template <bool> typename Op, typename Out, typename... In>
Flags dispatch(Format f, const ArrayOptions& options, Out* out, std::int64_t count,
               cudaStream_t stream, const In*... in) {
  const Settings settings = settings_of(f, options);
  if (instructions::can_use_instructions(f, options.modes)) {
    return run(Op<true>{settings, in...}, out, count, stream);
  }
  return run(Op<false>{settings, in...}, out, count, stream);
}

}  // namespace

Flags convert(Format to, const float* in, std::uint16_t* out, std::int64_t count,
              const ArrayOptions& options, cudaStream_t stream) {
  check_storage(to, 16);
  return dispatch<Narrow>(to, options, out, count, stream, in);
}

Flags convert(Format to, const float* in, std::uint8_t* out, std::int64_t count,
              const ArrayOptions& options, cudaStream_t stream) {
  check_storage(to, 8);
  return run(Narrow<false>{settings_of(to, options), in}, out, count, stream);
}

Flags convert(Format from, const std::uint16_t* in, float* out, std::int64_t count,
              const ArrayOptions& options, cudaStream_t stream) {
  check_storage(from, 16);
  const Settings settings = settings_of(from, options);
  if (instructions::can_use_instructions(from, options.modes)) {
    return run(Widen<true, std::uint16_t>{settings, in}, out, count, stream);
  }
  return run(Widen<false, std::uint16_t>{settings, in}, out, count, stream);
}

Flags convert(Format from, const std::uint8_t* in, float* out, std::int64_t count,
              const ArrayOptions& options, cudaStream_t stream) {
  check_storage(from, 8);
  return run(Widen<false, std::uint8_t>{settings_of(from, options), in}, out, count, stream);
}

Flags quantise(Format f, float* values, std::int64_t count, const ArrayOptions& options,
               cudaStream_t stream) {
  if (f.precision > 24 || f.min_quantum_exponent() < -149 || f.emax > 127) {
    throw std::invalid_argument("halfscope::cuda::quantise: binary32 does not hold all values of " +
                                std::to_string(f.width) + " bits with precision " +
                                std::to_string(f.precision));
  }
  return dispatch<Quantise>(f, options, values, count, stream, static_cast<const float*>(values));
}

Flags add(Format f, const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out,
          std::int64_t count, const ArrayOptions& options, cudaStream_t stream) {
  check_storage(f, 16);
  return dispatch<Add>(f, options, out, count, stream, a, b);
}

Flags multiply(Format f, const std::uint16_t* a, const std::uint16_t* b, std::uint16_t* out,
               std::int64_t count, const ArrayOptions& options, cudaStream_t stream) {
  check_storage(f, 16);
  return dispatch<Multiply>(f, options, out, count, stream, a, b);
}

Flags fused_multiply_add(Format f, const std::uint16_t* a, const std::uint16_t* b,
                         const std::uint16_t* c, std::uint16_t* out, std::int64_t count,
                         const ArrayOptions& options, cudaStream_t stream) {
  check_storage(f, 16);
  return dispatch<FusedMultiplyAdd>(f, options, out, count, stream, a, b, c);
}

}  // namespace halfscope::cuda
