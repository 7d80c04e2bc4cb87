// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tensor_core/gemm_inputs.hpp"

namespace probe {

/// Matrices of gemm_element: `lines` lines of `length`, line by line or, if `across`, the other
/// way.
void fill_matrix(GemmInputs kind, int side, int lines, int length, bool across, std::uint16_t* out);

}  // namespace probe
