// SPDX-License-Identifier: Apache-2.0
// The status that cudaGetLastError() returns.
#pragma once

#include <cuda_runtime_api.h>

namespace halfscope::emulated {

/// Remembers a status other than success; returns it.
cudaError_t failed(cudaError_t status);

}  // namespace halfscope::emulated
