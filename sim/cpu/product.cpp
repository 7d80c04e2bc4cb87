// SPDX-License-Identifier: Apache-2.0
#include "sim/cpu/product.hpp"

#include <Eigen/src/Core/util/Macros.h>
#include <fmt/format.h>

#include <vector>

namespace halfscope::sim {

namespace baseline {
ProductKernels kernels();
}
#if defined(__x86_64__)
namespace avx2 {
ProductKernels kernels();
}
#endif

std::span<const ProductKernels> all_product_kernels() {
  static const std::vector<ProductKernels> all = [] {
    std::vector<ProductKernels> found;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      found.push_back(avx2::kernels());
    }
#endif
    found.push_back(baseline::kernels());
    return found;
  }();
  return all;
}

const ProductKernels& product_kernels() {
  static const ProductKernels best = all_product_kernels().front();
  return best;
}

std::string eigen_version() {
  return fmt::format("Eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION,
                     EIGEN_MINOR_VERSION);
}

}  // namespace halfscope::sim
