// SPDX-License-Identifier: Apache-2.0
// wgmma m64n8k16 and m64n8k32, four warps an instruction; for sm_90a alone. A is in registers, each
// warp's 16 rows as mma.sync has them; B is in shared memory, not swizzled.
#include "cuda/tensor_core/cell_kernel.cuh"
#include "cuda/tensor_core/registers.cuh"

namespace probe {
namespace {

constexpr std::uint64_t kCoreBytes = 128;

/// PTX ISA, matrix descriptor: address, and the distances between core matrices along k and along
/// the columns, in units of 16 bytes. There is one core matrix of columns, so that only the first
/// distance matters; both are the same. Two core matrices are an instruction's k.
__device__ std::uint64_t descriptor(const std::uint16_t* core, int instruction) {
  const auto address = static_cast<std::uint64_t>(__cvta_generic_to_shared(core)) +
                       2 * kCoreBytes * static_cast<unsigned>(instruction);
  return (address & 0x3FFFF) >> 4 | (kCoreBytes >> 4) << 16 | (kCoreBytes >> 4) << 32;
}

// One piece of assembly each: the registers of D are not D before the wait. Operands of 16 bits
// also say that B is not transposed.

#define PROBE_WGMMA_BEGIN "{\n.reg .pred p;\nsetp.ne.b32 p, 1, 0;\nwgmma.fence.sync.aligned;\n"
#define PROBE_WGMMA_END "\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n}"
#define PROBE_WGMMA(shape_and_types, more)                                               \
  asm volatile(PROBE_WGMMA_BEGIN "wgmma.mma_async.sync.aligned." shape_and_types         \
                                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, p, 1, 1" more \
                                 ";" PROBE_WGMMA_END                                     \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                          \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)                      \
               : "memory")
#define PROBE_WGMMA_HALF(shape_and_types, more)                                  \
  asm volatile(PROBE_WGMMA_BEGIN "wgmma.mma_async.sync.aligned." shape_and_types \
                                 " {%0, %1}, {%2, %3, %4, %5}, %6, p, 1, 1" more \
                                 ";" PROBE_WGMMA_END                             \
               : "+r"(d[0]), "+r"(d[1])                                          \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b)              \
               : "memory")

template <Instruction kInstruction>
__device__ void multiply(float (&d)[4], const std::uint32_t (&a)[4], std::uint64_t b) {
  if constexpr (kInstruction == Instruction::wgmma_k16) {
    PROBE_WGMMA("m64n8k16.f32.f16.f16", ", 0");
  } else if constexpr (kInstruction == Instruction::wgmma_k16_bfloat16) {
    PROBE_WGMMA("m64n8k16.f32.bf16.bf16", ", 0");
  } else if constexpr (kInstruction == Instruction::wgmma_k32_e4m3) {
    PROBE_WGMMA("m64n8k32.f32.e4m3.e4m3", "");
  } else if constexpr (kInstruction == Instruction::wgmma_k32_e5m2) {
    PROBE_WGMMA("m64n8k32.f32.e5m2.e5m2", "");
  } else {
    static_assert(kInstruction == Instruction::wgmma_k32_mixed);
    PROBE_WGMMA("m64n8k32.f32.e5m2.e4m3", "");
  }
}

template <Instruction kInstruction>
__device__ void multiply(std::uint32_t (&d)[2], const std::uint32_t (&a)[4], std::uint64_t b) {
  if constexpr (kInstruction == Instruction::wgmma_k16) {
    PROBE_WGMMA_HALF("m64n8k16.f16.f16.f16", ", 0");
  } else if constexpr (kInstruction == Instruction::wgmma_k32_e4m3) {
    PROBE_WGMMA_HALF("m64n8k32.f16.e4m3.e4m3", "");
  } else if constexpr (kInstruction == Instruction::wgmma_k32_e5m2) {
    PROBE_WGMMA_HALF("m64n8k32.f16.e5m2.e5m2", "");
  } else {
    static_assert(kInstruction == Instruction::wgmma_k32_mixed);
    PROBE_WGMMA_HALF("m64n8k32.f16.e5m2.e4m3", "");
  }
}

template <Instruction kInstruction, Accumulator kAccumulator>
struct Wgmma : Shape<kInstruction> {
  __device__ static void run(const Tile& tile, std::uint32_t (&d)[kOutputsOfThread]) {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // what fill() wrote, for wgmma
    __syncthreads();
    Registers<kAccumulator> registers(d);
    const int row = static_cast<int>(threadIdx.x) / kWarp * 16 + lane() / 4;
    for (int i = 0; i < tile.k / Wgmma::kProducts; ++i) {
      const int k = i * Wgmma::kProducts + lane() % 4 * Wgmma::kOfRegister;
      const int upper = k + Wgmma::kOfHalf;
      const std::uint32_t a[4] = {register_at<Wgmma>(tile.a, tile.k, row, k),
                                  register_at<Wgmma>(tile.a, tile.k, row + 8, k),
                                  register_at<Wgmma>(tile.a, tile.k, row, upper),
                                  register_at<Wgmma>(tile.a, tile.k, row + 8, upper)};
      multiply<kInstruction>(registers.d, a, descriptor(tile.b_core, i));
    }
    registers.store(d);
  }
};

}  // namespace

void launch_wgmma(const Batch& batch) {
  switch (batch.cell.instruction) {
    case Instruction::wgmma_k16: return launch_both<Wgmma, Instruction::wgmma_k16>(batch);
    case Instruction::wgmma_k16_bfloat16:
      return launch_cell<Wgmma<Instruction::wgmma_k16_bfloat16, Accumulator::binary32>>(batch);
    case Instruction::wgmma_k32_e4m3: return launch_both<Wgmma, Instruction::wgmma_k32_e4m3>(batch);
    case Instruction::wgmma_k32_e5m2: return launch_both<Wgmma, Instruction::wgmma_k32_e5m2>(batch);
    case Instruction::wgmma_k32_mixed:
      return launch_both<Wgmma, Instruction::wgmma_k32_mixed>(batch);
    default: throw std::runtime_error("no instruction of wgmma");
  }
}

}  // namespace probe
