// SPDX-License-Identifier: Apache-2.0
// The kernel around an instruction: makes its inputs in shared memory, runs it, and judges each of
// its outputs. A thread has four of them: rows g and g + 8 of its warp's 16, columns 2t and 2t + 1,
// where g = lane / 4 and t = lane % 4 (PTX ISA, matrix fragments of mma.m16n8k16).
#pragma once

#include <algorithm>

#include "cuda/device.hpp"
#include "cuda/tensor_core/cell.hpp"

namespace probe {

/// Inputs of one instruction, or of a chain, in shared memory.
struct Tile {
  std::uint16_t* b_core;  ///< B once more, as wgmma wants it; only for wgmma
  std::uint16_t* a;       ///< a[row][k]
  std::uint16_t* b;       ///< b[column][k]
  std::uint32_t* c;       ///< c[row][column]
  int k;
};

constexpr int kWarp = 32;
constexpr int kOutputsOfThread = 4;

inline __host__ __device__ std::size_t tile_bytes(int rows, int k, bool core) {
  const std::size_t b = sizeof(std::uint16_t) * kColumns * static_cast<std::size_t>(k);
  const std::size_t a = sizeof(std::uint16_t) * static_cast<std::size_t>(rows * k);
  return (core ? 2 * b : b) + a + sizeof(std::uint32_t) * static_cast<std::size_t>(rows * kColumns);
}

__device__ inline Tile tile_in(void* memory, int rows, int k, bool core) {
  Tile out{};
  out.k = k;
  out.b_core = static_cast<std::uint16_t*>(memory);
  out.b = out.b_core + (core ? kColumns * k : 0);
  out.a = out.b + kColumns * k;
  out.c = reinterpret_cast<std::uint32_t*>(out.a + rows * k);
  return out;
}

/// The instruction of a kernel, as constants of device code.
template <Instruction kInstruction>
struct Shape {
  static constexpr int kRows = shape_of(kInstruction).rows;
  static constexpr int kProducts = shape_of(kInstruction).products;
  static constexpr Operands kOperands = shape_of(kInstruction).operands;
  static constexpr bool kCore = shape_of(kInstruction).is_wgmma();
  /// Of a register, of the 16 bytes that are half of an instruction's k.
  static constexpr int kOfRegister = shape_of(kInstruction).is_fp8() ? 4 : 2;
  static constexpr int kOfHalf = 4 * kOfRegister;
};

/// Core matrices of 8 columns by 16 bytes along k, one after the other along k: where an element
/// is, in elements.
template <typename S>
__device__ int core_index(int column, int k) {
  return k / S::kOfHalf * 8 * S::kOfHalf + column * S::kOfHalf + k % S::kOfHalf;
}

template <typename S>
__device__ void put_in_core(const Tile& tile, int column, int k, std::uint16_t b) {
  const int at = core_index<S>(column, k);
  if constexpr (S::kOfRegister == 4) {
    reinterpret_cast<unsigned char*>(tile.b_core)[at] = static_cast<unsigned char>(b);
  } else {
    tile.b_core[at] = b;
  }
}

template <typename S>
__device__ void fill(const Tile& tile, const Place& at, Accumulator d) {
  constexpr int kRows = S::kRows;
  for (int i = static_cast<int>(threadIdx.x); i < kRows * at.k; i += static_cast<int>(blockDim.x)) {
    tile.a[i] = a_element(at, i / at.k, i % at.k);
  }
  for (int i = static_cast<int>(threadIdx.x); i < kColumns * at.k;
       i += static_cast<int>(blockDim.x)) {
    const int column = i / at.k, k = i % at.k;
    tile.b[i] = b_element(at, column, k);
    if (S::kCore) put_in_core<S>(tile, column, k, tile.b[i]);
  }
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kColumns;
       i += static_cast<int>(blockDim.x)) {
    tile.c[i] = c_element(at, d, i / kColumns, i % kColumns);
  }
}

__device__ inline int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
__device__ inline int row_of(int output) {
  return static_cast<int>(threadIdx.x) / kWarp * 16 + lane() / 4 + (output / 2) * 8;
}
__device__ inline int column_of(int output) { return lane() % 4 * 2 + output % 2; }

/// Neighbours of a[row][k...] or b[column][k...] in a register, the first one in its lowest bits.
template <typename S>
__device__ std::uint32_t register_at(const std::uint16_t* matrix, int k, int row, int column) {
  std::uint32_t out = 0;
  for (int i = 0; i < S::kOfRegister; ++i) {
    out |= std::uint32_t{matrix[row * k + column + i]} << (i * 32 / S::kOfRegister);
  }
  return out;
}

/// Counts of one block, by rule and warp.
using Counts = unsigned[kMostHypotheses];

/// Every thread of a warp calls this.
template <typename S>
__device__ void judge(const Batch& batch, const Tile& tile, std::uint32_t instruction,
                      const std::uint32_t (&d)[kOutputsOfThread], Counts& counts) {
  for (int output = 0; output < kOutputsOfThread; ++output) {
    const int row = row_of(output), column = column_of(output);
    const std::size_t place =
        (std::size_t{instruction} * S::kRows + static_cast<std::size_t>(row)) * kColumns +
        static_cast<std::size_t>(column);
    std::uint32_t mask = 0;
    for (int i = 0; i < batch.rule_count; ++i) {
      const std::uint32_t ours = result_of<format_of_a(S::kOperands), format_of_b(S::kOperands)>(
          batch.rules[i], batch.cell.accumulator, tile.a + row * tile.k, tile.b + column * tile.k,
          tile.k, tile.c[row * kColumns + column]);
      const bool wrong = ours != d[output];
      if (wrong) mask |= 1U << i;
      const unsigned votes = __ballot_sync(0xFFFFFFFFU, wrong);
      if (lane() == 0) counts[i] += static_cast<unsigned>(__popc(votes));
    }
    if (batch.d != nullptr) batch.d[place] = d[output];
    if (batch.masks != nullptr) batch.masks[place] = mask;
  }
}

/// Operation: a Shape, and run(tile, d), which is given C and leaves D.
template <typename Operation>
__global__ void cell_kernel(Batch batch) {
  extern __shared__ __align__(128) unsigned char memory[];
  __shared__ Counts counts[Operation::kRows / 16];
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  counts[warp][lane()] = 0;
  const Tile tile = tile_in(memory, Operation::kRows, batch.cell.k, Operation::kCore);
  for (std::uint32_t i = blockIdx.x; i < batch.count; i += gridDim.x) {
    const Place at = {batch.cell.distribution, batch.first + i, batch.cell.k, Operation::kOperands};
    fill<Operation>(tile, at, batch.cell.accumulator);
    __syncthreads();
    std::uint32_t d[kOutputsOfThread];
    for (int output = 0; output < kOutputsOfThread; ++output) {
      d[output] = tile.c[row_of(output) * kColumns + column_of(output)];
    }
    Operation::run(tile, d);
    judge<Operation>(batch, tile, i, d, counts[warp]);
    __syncthreads();
  }
  const unsigned mine = counts[warp][lane()];
  if (lane() < batch.rule_count && mine != 0) atomicAdd(&batch.wrong[lane()], mine);
}

template <typename Operation>
void launch_cell(const Batch& batch) {
  constexpr unsigned kMostBlocks = 8192;
  const std::size_t bytes = tile_bytes(Operation::kRows, batch.cell.k, Operation::kCore);
  const unsigned threads = Operation::kRows / 16 * kWarp;
  cell_kernel<Operation><<<std::min(batch.count, kMostBlocks), threads, bytes>>>(batch);
  device::check(cudaGetLastError());
}

}  // namespace probe
