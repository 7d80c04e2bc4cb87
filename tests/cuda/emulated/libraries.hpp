// SPDX-License-Identifier: Apache-2.0
// cuDNN and cuBLAS for the emulated device. Descriptors are the real cuDNN's. What would need a
// device is computed here, naively, in binary64 with one rounding to the type of the result, after
// every argument was checked: descriptors against each other, pointers against the emulated
// memory, workspaces, leading dimensions. A refusal has the status of the real one, and
// cudnnGetLastErrorString() says why.
//
// So that the choice of algorithms is tested: the lists hold faster ones that need too much memory,
// ones that are not deterministic (their results do change from call to call) and ones that are not
// supported; binary32 is rounded to TF32 wherever the math type allows that.
#pragma once

#include "sim/backend/cudnn/api.hpp"

namespace halfscope::emulated {

const sim::backend::cudnn::CudaLibraries& emulated_libraries();

}  // namespace halfscope::emulated
