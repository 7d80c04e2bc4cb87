// SPDX-License-Identifier: Apache-2.0
// PyTorch's tensors, where they are: for the recorder. A DLPack capsule a tensor would cost more
// than what is done with a small one, and so would questions that Python asks.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::python {

enum class Memory : std::uint8_t { cpu, cuda };

/// The values of a torch.Tensor or Parameter that has them in this memory in C order; empty for all
/// others. They lie there as long as the tensor lives. Throws TypeError for a dtype without a
/// table.
std::optional<TensorView> view_of_torch(nanobind::handle tensor, Memory memory = Memory::cpu);

std::vector<std::uint64_t> torch_shape(nanobind::handle tensor);

/// Of a torch.dtype; empty where it has no table, and for None.
std::optional<Dtype> dtype_of_torch(nanobind::handle dtype);

}  // namespace halfscope::python
