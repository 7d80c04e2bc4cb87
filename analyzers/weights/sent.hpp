// SPDX-License-Identifier: Apache-2.0
// Sets of moved weights as tensors of a file, and the bytes of sparse updates.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analyzers/weights/moved.hpp"
#include "halfscope/log/safetensors.hpp"

namespace halfscope::analyzers::weights {

/// Returns a set as a tensor: the sorted indices of its elements in U32 if these are smaller than
/// one bit an element in U8. Bit i % 8 of bits[i / 8] is that of element i. docs/weights.md
/// describes the file.
log::RawTensor set_tensor(const std::string& name, std::span<const std::uint8_t> bits,
                          std::uint64_t count);

/// Adds what is sent to a receiver that has the copies of `before`, to give it those of `after`.
void add_sent(const TensorView& before, const TensorView& after, Dtype copies, SentBytes& to);

}  // namespace halfscope::analyzers::weights
