// SPDX-License-Identifier: Apache-2.0
// wgmma m64n8k16, four warps an instruction; for sm_90a alone. A is in registers, each warp's 16
// rows as mma.sync has them; B is in shared memory, not swizzled.
#include "cuda/tensor_core/cell_kernel.cuh"

namespace probe {
namespace {

constexpr int kProducts = 16;
constexpr std::uint64_t kCoreBytes = 128;

/// PTX ISA, matrix descriptor: address, and the distances between core matrices along k and along
/// the columns, in units of 16 bytes. There is one core matrix of columns, so that only the first
/// distance matters; both are the same.
__device__ std::uint64_t descriptor(const std::uint16_t* core) {
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(core));
  return (address & 0x3FFFF) >> 4 | (kCoreBytes >> 4) << 16 | (kCoreBytes >> 4) << 32;
}

// One piece of assembly each: the registers of D are not D before the wait.

#define PROBE_WGMMA_BEGIN "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.fence.sync.aligned;\n"
#define PROBE_WGMMA_END "\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n}"

__device__ void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint64_t b) {
  asm volatile(PROBE_WGMMA_BEGIN
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, p, 1, 1, 0;" PROBE_WGMMA_END
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)
               : "memory");
}

__device__ void multiply(std::uint32_t (&d)[2], const std::uint32_t (&a)[4], std::uint64_t b) {
  asm volatile(PROBE_WGMMA_BEGIN
               "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 "
               "{%0, %1}, {%2, %3, %4, %5}, %6, p, 1, 1, 0;" PROBE_WGMMA_END
               : "+r"(d[0]), "+r"(d[1])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)
               : "memory");
}

template <typename Registers>
__device__ void multiply_all(const Tile& tile, Registers& d) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // what fill() wrote, for wgmma
  __syncthreads();
  const int row = static_cast<int>(threadIdx.x) / kWarp * 16 + lane() / 4, t = lane() % 4;
  for (int k0 = 0; k0 < tile.k; k0 += kProducts) {
    const std::uint32_t a[4] = {pair_at(tile.a, tile.k, row, k0 + t * 2),
                                pair_at(tile.a, tile.k, row + 8, k0 + t * 2),
                                pair_at(tile.a, tile.k, row, k0 + t * 2 + 8),
                                pair_at(tile.a, tile.k, row + 8, k0 + t * 2 + 8)};
    multiply(d, a, descriptor(tile.b_core + core_index(0, k0)));
  }
}

template <Accumulator kAccumulator>
struct Wgmma {
  static constexpr int kRows = 64;
  static constexpr bool kCore = true;

  __device__ static void run(const Tile& tile, std::uint32_t (&d)[kOutputsOfThread]) {
    if constexpr (kAccumulator == Accumulator::binary32) {
      float wide[4];
      for (int i = 0; i < 4; ++i) wide[i] = __uint_as_float(d[i]);
      multiply_all(tile, wide);
      for (int i = 0; i < 4; ++i) d[i] = __float_as_uint(wide[i]);
    } else {
      std::uint32_t pairs[2] = {d[0] | d[1] << 16, d[2] | d[3] << 16};
      multiply_all(tile, pairs);
      for (int i = 0; i < 4; ++i) d[i] = pairs[i / 2] >> (i % 2 * 16) & 0xFFFF;
    }
  }
};

}  // namespace

void launch_wgmma(const Batch& batch) {
  batch.cell.accumulator == Accumulator::binary32
      ? launch_cell<Wgmma<Accumulator::binary32>>(batch)
      : launch_cell<Wgmma<Accumulator::binary16>>(batch);
}

}  // namespace probe
