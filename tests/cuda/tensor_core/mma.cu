// SPDX-License-Identifier: Apache-2.0
// mma.sync, one warp an instruction.
#include "cuda/tensor_core/cell_kernel.cuh"

namespace probe {
namespace {

/// A's fragment: rows g and g + 8; of k16 also the values of k from 8 on.
__device__ void load(const Tile& tile, int k0, int count, std::uint32_t* a, std::uint32_t* b) {
  const int g = lane() / 4, t = lane() % 4;
  for (int half = 0; half < count; ++half) {
    const int k = k0 + half * 8 + t * 2;
    a[2 * half] = pair_at(tile.a, tile.k, g, k);
    a[2 * half + 1] = pair_at(tile.a, tile.k, g + 8, k);
    b[half] = pair_at(tile.b, tile.k, g, k);
  }
}

__device__ void multiply_k16(float (&d)[4], const std::uint32_t* a, const std::uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ void multiply_k8(float (&d)[4], const std::uint32_t* a, const std::uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

__device__ void multiply_k16(std::uint32_t (&d)[2], const std::uint32_t* a,
                             const std::uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 "
      "{%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
      : "+r"(d[0]), "+r"(d[1])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ void multiply_k8(std::uint32_t (&d)[2], const std::uint32_t* a, const std::uint32_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};"
      : "+r"(d[0]), "+r"(d[1])
      : "r"(a[0]), "r"(a[1]), "r"(b[0]));
}

template <int kProducts, typename Registers>
__device__ void multiply(const Tile& tile, Registers& d) {
  for (int k0 = 0; k0 < tile.k; k0 += kProducts) {
    std::uint32_t a[4], b[2];
    load(tile, k0, kProducts / 8, a, b);
    if constexpr (kProducts == 16) {
      multiply_k16(d, a, b);
    } else {
      multiply_k8(d, a, b);
    }
  }
}

template <int kProducts, Accumulator kAccumulator>
struct Mma {
  static constexpr int kRows = 16;
  static constexpr bool kCore = false;

  __device__ static void run(const Tile& tile, std::uint32_t (&d)[kOutputsOfThread]) {
    if constexpr (kAccumulator == Accumulator::binary32) {
      float wide[4];
      for (int i = 0; i < 4; ++i) wide[i] = __uint_as_float(d[i]);
      multiply<kProducts>(tile, wide);
      for (int i = 0; i < 4; ++i) d[i] = __float_as_uint(wide[i]);
    } else {
      std::uint32_t pairs[2] = {d[0] | d[1] << 16, d[2] | d[3] << 16};
      multiply<kProducts>(tile, pairs);
      for (int i = 0; i < 4; ++i) d[i] = pairs[i / 2] >> (i % 2 * 16) & 0xFFFF;
    }
  }
};

}  // namespace

void launch_mma(const Batch& batch) {
  const bool wide = batch.cell.accumulator == Accumulator::binary32;
  if (batch.cell.instruction == Instruction::mma_k16) {
    wide ? launch_cell<Mma<16, Accumulator::binary32>>(batch)
         : launch_cell<Mma<16, Accumulator::binary16>>(batch);
  } else {
    wide ? launch_cell<Mma<8, Accumulator::binary32>>(batch)
         : launch_cell<Mma<8, Accumulator::binary16>>(batch);
  }
}

}  // namespace probe
