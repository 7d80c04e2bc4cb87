// SPDX-License-Identifier: Apache-2.0
// mma.sync, one warp an instruction.
#include "cuda/tensor_core/cell_kernel.cuh"
#include "cuda/tensor_core/registers.cuh"

namespace probe {
namespace {

/// A's fragment: rows g and g + 8; then the same in the upper half of k, if there is one.
template <typename S>
__device__ void load(const Tile& tile, int k0, std::uint32_t* a, std::uint32_t* b) {
  const int g = lane() / 4, t = lane() % 4;
  for (int half = 0; half < S::kProducts / S::kOfHalf; ++half) {
    const int k = k0 + half * S::kOfHalf + t * S::kOfRegister;
    a[2 * half] = register_at<S>(tile.a, tile.k, g, k);
    a[2 * half + 1] = register_at<S>(tile.a, tile.k, g + 8, k);
    b[half] = register_at<S>(tile.b, tile.k, g, k);
  }
}

// A of four registers and B of two, or half of them. FP8 is there from compute capability 8.9 on.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
#define PROBE_FP8(instruction) __trap()
#else
#define PROBE_FP8(instruction) instruction
#endif

#define PROBE_MMA(shape_and_types)                                                \
  asm volatile("mma.sync.aligned." shape_and_types                                \
               " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                   \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define PROBE_MMA_SHORT(shape_and_types)                              \
  asm volatile("mma.sync.aligned." shape_and_types                    \
               " {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])       \
               : "r"(a[0]), "r"(a[1]), "r"(b[0]))
#define PROBE_MMA_HALF(shape_and_types)                           \
  asm volatile("mma.sync.aligned." shape_and_types                \
               " {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};" \
               : "+r"(d[0]), "+r"(d[1])                           \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define PROBE_MMA_HALF_SHORT(shape_and_types)                                             \
  asm volatile("mma.sync.aligned." shape_and_types " {%0, %1}, {%2, %3}, {%4}, {%0, %1};" \
               : "+r"(d[0]), "+r"(d[1])                                                   \
               : "r"(a[0]), "r"(a[1]), "r"(b[0]))

template <Instruction kInstruction>
__device__ void multiply(float (&d)[4], const std::uint32_t* a, const std::uint32_t* b) {
  if constexpr (kInstruction == Instruction::mma_k16) {
    PROBE_MMA("m16n8k16.row.col.f32.f16.f16.f32");
  } else if constexpr (kInstruction == Instruction::mma_k8) {
    PROBE_MMA_SHORT("m16n8k8.row.col.f32.f16.f16.f32");
  } else if constexpr (kInstruction == Instruction::mma_k16_bfloat16) {
    PROBE_MMA("m16n8k16.row.col.f32.bf16.bf16.f32");
  } else if constexpr (kInstruction == Instruction::mma_k8_bfloat16) {
    PROBE_MMA_SHORT("m16n8k8.row.col.f32.bf16.bf16.f32");
  } else if constexpr (kInstruction == Instruction::mma_k32_e4m3) {
    PROBE_FP8(PROBE_MMA("m16n8k32.row.col.f32.e4m3.e4m3.f32"));
  } else if constexpr (kInstruction == Instruction::mma_k32_e5m2) {
    PROBE_FP8(PROBE_MMA("m16n8k32.row.col.f32.e5m2.e5m2.f32"));
  } else {
    static_assert(kInstruction == Instruction::mma_k32_mixed);
    PROBE_FP8(PROBE_MMA("m16n8k32.row.col.f32.e5m2.e4m3.f32"));
  }
}

template <Instruction kInstruction>
__device__ void multiply(std::uint32_t (&d)[2], const std::uint32_t* a, const std::uint32_t* b) {
  if constexpr (kInstruction == Instruction::mma_k16) {
    PROBE_MMA_HALF("m16n8k16.row.col.f16.f16.f16.f16");
  } else if constexpr (kInstruction == Instruction::mma_k8) {
    PROBE_MMA_HALF_SHORT("m16n8k8.row.col.f16.f16.f16.f16");
  } else if constexpr (kInstruction == Instruction::mma_k32_e4m3) {
    PROBE_FP8(PROBE_MMA_HALF("m16n8k32.row.col.f16.e4m3.e4m3.f16"));
  } else if constexpr (kInstruction == Instruction::mma_k32_e5m2) {
    PROBE_FP8(PROBE_MMA_HALF("m16n8k32.row.col.f16.e5m2.e5m2.f16"));
  } else {
    static_assert(kInstruction == Instruction::mma_k32_mixed);
    PROBE_FP8(PROBE_MMA_HALF("m16n8k32.row.col.f16.e5m2.e4m3.f16"));
  }
}

template <Instruction kInstruction, Accumulator kAccumulator>
struct Mma : Shape<kInstruction> {
  __device__ static void run(const Tile& tile, std::uint32_t (&d)[kOutputsOfThread]) {
    Registers<kAccumulator> registers(d);
    for (int k0 = 0; k0 < tile.k; k0 += Mma::kProducts) {
      std::uint32_t a[4], b[2];
      load<Mma>(tile, k0, a, b);
      multiply<kInstruction>(registers.d, a, b);
    }
    registers.store(d);
  }
};

}  // namespace

void launch_mma(const Batch& batch) {
  switch (batch.cell.instruction) {
    case Instruction::mma_k16: return launch_both<Mma, Instruction::mma_k16>(batch);
    case Instruction::mma_k8: return launch_both<Mma, Instruction::mma_k8>(batch);
    case Instruction::mma_k16_bfloat16:
      return launch_cell<Mma<Instruction::mma_k16_bfloat16, Accumulator::binary32>>(batch);
    case Instruction::mma_k8_bfloat16:
      return launch_cell<Mma<Instruction::mma_k8_bfloat16, Accumulator::binary32>>(batch);
    case Instruction::mma_k32_e4m3: return launch_both<Mma, Instruction::mma_k32_e4m3>(batch);
    case Instruction::mma_k32_e5m2: return launch_both<Mma, Instruction::mma_k32_e5m2>(batch);
    case Instruction::mma_k32_mixed: return launch_both<Mma, Instruction::mma_k32_mixed>(batch);
    default: throw std::runtime_error("no instruction of mma.sync");
  }
}

}  // namespace probe
