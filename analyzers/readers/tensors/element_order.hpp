// SPDX-License-Identifier: Apache-2.0
// Converts arrays in another element order than C's, or in big-endian byte order, to little-endian
// C order, which is what all other code reads.
#pragma once

#include <cstdint>
#include <span>

#include "halfscope/log/mapped_file.hpp"
#include "halfscope/log/tensor_file.hpp"

namespace halfscope::analyzers::readers::tensors {

/// Returns the values of a tensor as little-endian bytes in C order: `data` itself if it has that
/// order, else a copy. `strides`: in elements, one for each axis of the tensor.
log::FileBytes in_c_order(log::FileBytes data, const log::NamedTensor& tensor,
                          std::span<const std::uint64_t> strides, bool big_endian);

}  // namespace halfscope::analyzers::readers::tensors
