// SPDX-License-Identifier: Apache-2.0
// Compiled instead of the backend if the program is built without CUDA or cuDNN's headers.
#include "sim/backend/backend.hpp"

namespace halfscope::sim::backend {

std::string cudnn_missing_message() {
  return "this program was built without CUDA and cuDNN; build it where both are found";
}

std::unique_ptr<Backend> make_cudnn_backend(Accumulation) {
  throw BackendMissing(cudnn_missing_message());
}

}  // namespace halfscope::sim::backend
