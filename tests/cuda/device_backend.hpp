// SPDX-License-Identifier: Apache-2.0
// The cuDNN backend as tests have it: on the emulated device, or on a real one.
#pragma once

#include <memory>

#include "sim/backend/backend.hpp"

namespace halfscope::test {

/// Null where there is no device; the reason has been printed as CTest wants it.
std::unique_ptr<sim::backend::Backend> device_backend(
    sim::backend::Accumulation accumulation = sim::backend::Accumulation::fp32);

}  // namespace halfscope::test
