// SPDX-License-Identifier: Apache-2.0
#include "cuda/device_backend.hpp"

#include <iostream>

#include "cuda/skip.hpp"

namespace halfscope::test {

std::unique_ptr<sim::backend::Backend> device_backend(sim::backend::Accumulation accumulation) {
  if (skipped()) return nullptr;
  if (const std::string why = sim::backend::cudnn_missing_message(); !why.empty()) {
    std::cout << "skipped: no CUDA device with cuDNN: " << why << '\n';
    return nullptr;
  }
  return sim::backend::make_cudnn_backend(accumulation);
}

}  // namespace halfscope::test
