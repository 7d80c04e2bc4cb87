// SPDX-License-Identifier: Apache-2.0
#include "sim/cpu/product.hpp"

#include <Eigen/src/Core/util/Macros.h>
#include <fmt/format.h>
#include <hwy/targets.h>

#include <vector>

#include "halfscope/device/vector_target.hpp"

namespace halfscope::sim {

namespace any {
ProductKernels kernels();
}
#if defined(__x86_64__)
namespace avx2 {
ProductKernels kernels();
}
#endif

std::span<const ProductKernels> all_product_kernels() {
  static const std::vector<ProductKernels> all = [] {
    std::vector<ProductKernels> found{any::kernels()};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      found.push_back(avx2::kernels());
    }
#endif
    return found;
  }();
  return all;
}

const ProductKernels& product_kernels() {
  const std::span<const ProductKernels> all = all_product_kernels();
  return uses_vector_target(HWY_AVX2) ? all.back() : all.front();
}

std::string eigen_version() {
  return fmt::format("Eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION,
                     EIGEN_MINOR_VERSION);
}

}  // namespace halfscope::sim
