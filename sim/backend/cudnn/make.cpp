// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "sim/backend/cudnn/backend.hpp"

namespace halfscope::sim::backend {

std::string why_no_cudnn() {
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
  if (const std::string why = why_no_cudnn(); !why.empty()) throw BackendMissing(why);
  return std::make_unique<cudnn::CudnnBackend>(cudnn::load_cuda_libraries(), accumulation);
}

}  // namespace halfscope::sim::backend
