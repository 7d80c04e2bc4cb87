// SPDX-License-Identifier: Apache-2.0
// D of a thread in the registers of an instruction: four of binary32, or two pairs of binary16.
#pragma once

#include "cuda/tensor_core/cell_kernel.cuh"

namespace probe {

template <Accumulator kAccumulator>
struct Registers {
  std::uint32_t d[2];

  explicit __device__ Registers(const std::uint32_t (&c)[kOutputsOfThread])
      : d{c[0] | c[1] << 16, c[2] | c[3] << 16} {}

  __device__ void store(std::uint32_t (&to)[kOutputsOfThread]) const {
    for (int i = 0; i < kOutputsOfThread; ++i) to[i] = d[i / 2] >> (i % 2 * 16) & 0xFFFF;
  }
};

template <>
struct Registers<Accumulator::binary32> {
  float d[kOutputsOfThread];

  explicit __device__ Registers(const std::uint32_t (&c)[kOutputsOfThread]) {
    for (int i = 0; i < kOutputsOfThread; ++i) d[i] = __uint_as_float(c[i]);
  }

  __device__ void store(std::uint32_t (&to)[kOutputsOfThread]) const {
    for (int i = 0; i < kOutputsOfThread; ++i) to[i] = __float_as_uint(d[i]);
  }
};

template <template <Instruction, Accumulator> typename Operation, Instruction kInstruction>
void launch_both(const Batch& batch) {
  batch.cell.accumulator == Accumulator::binary32
      ? launch_cell<Operation<kInstruction, Accumulator::binary32>>(batch)
      : launch_cell<Operation<kInstruction, Accumulator::binary16>>(batch);
}

}  // namespace probe
