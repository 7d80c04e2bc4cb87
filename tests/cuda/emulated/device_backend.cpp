// SPDX-License-Identifier: Apache-2.0
// The cuDNN backend on the emulated device, for tests and, in their program, for the trainer.
#include "cuda/device_backend.hpp"

#include "cuda/emulated/libraries.hpp"
#include "sim/backend/cudnn/backend.hpp"

namespace halfscope::sim::backend {

std::string cudnn_missing_message() { return {}; }

std::unique_ptr<Backend> make_cudnn_backend(Accumulation accumulation) {
  return std::make_unique<cudnn::CudnnBackend>(emulated::emulated_libraries(), accumulation);
}

}  // namespace halfscope::sim::backend

namespace halfscope::test {

std::unique_ptr<sim::backend::Backend> device_backend(sim::backend::Accumulation accumulation) {
  return sim::backend::make_cudnn_backend(accumulation);
}

}  // namespace halfscope::test
