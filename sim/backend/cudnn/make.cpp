// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "sim/backend/cudnn/backend.hpp"

namespace halfscope::sim::backend {

std::string cudnn_missing_message() {
  if (const std::string why = cuda::why_no_device(); !why.empty()) {
    return fmt::format("no GPU can be used ({})", why);
  }
  try {
    cudnn::load_cuda_libraries();
  } catch (const BackendMissing& missing) {
    return missing.what();
  }
  return {};
}

std::unique_ptr<Backend> make_cudnn_backend(Accumulation accumulation) {
  if (const std::string why = cudnn_missing_message(); !why.empty()) throw BackendMissing(why);
  return std::make_unique<cudnn::CudnnBackend>(cudnn::load_cuda_libraries(), accumulation);
}

}  // namespace halfscope::sim::backend
