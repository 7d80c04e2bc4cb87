// SPDX-License-Identifier: Apache-2.0
// Views of PyTorch's tensors for the recorder, without a copy. For small tensors, a DLPack capsule
// or checks in Python would cost more than counting.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "halfscope/table/count/count.hpp"

namespace halfscope::python {

enum class Memory : std::uint8_t { cpu, cuda };

/// Returns a view of the values of a torch.Tensor or Parameter; empty unless they are in this
/// memory in C order, or on a GPU in any order of the dimensions without gaps (channels_last): the
/// view is in the order of the memory. It is valid as long as the tensor lives. Throws TypeError
/// for a dtype without a table.
std::optional<TensorView> view_of_torch(nanobind::handle tensor, Memory memory = Memory::cpu);

std::vector<std::uint64_t> torch_shape(nanobind::handle tensor);

/// Returns the bytes of a torch.Tensor's elements.
std::size_t bytes_of_torch(nanobind::handle tensor);

/// Adds a hook on the gradient of a tensor and returns true, if it is a torch.Tensor on a GPU that
/// an operation made, that needs a gradient and has no hook yet. As Tensor.register_hook() does it,
/// but without its handle, which costs more than the rest.
bool hook_on_device(nanobind::handle tensor, nanobind::handle hook);

/// Returns the type of a torch.dtype; empty for None and for a dtype without a table.
std::optional<Dtype> dtype_of_torch(nanobind::handle dtype);

}  // namespace halfscope::python
