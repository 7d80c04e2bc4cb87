// SPDX-License-Identifier: Apache-2.0
// Lines to paste into a training script.
#pragma once

#include <string>

namespace halfscope::reports {

/// The PyTorch line for a static loss scale of 2^log2; runs on PyTorch 1.6 and later. GradScaler
/// has no truly static mode: it never grows again, but a step that overflows still halves the
/// scale.
std::string pytorch_static_scale(int log2);

}  // namespace halfscope::reports
