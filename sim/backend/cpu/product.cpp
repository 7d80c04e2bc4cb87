// SPDX-License-Identifier: Apache-2.0
#include "sim/backend/cpu/product.hpp"

#include <Eigen/src/Core/util/Macros.h>
#include <fmt/format.h>
#include <hwy/targets.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "halfscope/device/vector_target.hpp"

namespace halfscope::sim::backend::cpu {

namespace any {
ProductKernels kernels();
}
namespace any_exact {
ProductKernels kernels();
}
#if defined(__x86_64__)
namespace avx2 {
ProductKernels kernels();
}
#endif

namespace {

/// Returns true if x has at most 12 significant bits, from 2^-74 up, and is below 2^63: the product
/// of two such numbers is exact. That includes all of binary16, and bfloat16 except its largest and
/// smallest values.
bool is_short(float x) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFF;
  const bool in_range =
      magnitude - std::bit_cast<std::uint32_t>(0x1p-63F) <
      std::bit_cast<std::uint32_t>(0x1p63F) - std::bit_cast<std::uint32_t>(0x1p-63F);
  return magnitude == 0 || (in_range && (magnitude & 0xFFF) == 0);
}

bool all_short(MatrixAt<const float> m, std::int64_t rows, std::int64_t columns) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const float* const row = m.data + i * m.stride;
    if (!std::all_of(row, row + columns, is_short)) return false;
  }
  return true;
}

const ProductKernels& for_operands(bool exact) {
  static const ProductKernels kinds[] = {any::kernels(), any_exact::kernels()};
  return kinds[exact ? 1 : 0];
}

void plain(const ProductShape& s, MatrixAt<const float> a, MatrixAt<const float> b,
           MatrixAt<float> c) {
  for_operands(all_short(a, s.rows, s.depth) && all_short(b, s.depth, s.columns)).plain(s, a, b, c);
}

void right_transposed(const ProductShape& s, MatrixAt<const float> a, MatrixAt<const float> b,
                      MatrixAt<float> c) {
  for_operands(all_short(a, s.rows, s.depth) && all_short(b, s.columns, s.depth))
      .right_transposed(s, a, b, c);
}

void add_left_transposed(const ProductShape& s, MatrixAt<const float> a, MatrixAt<const float> b,
                         MatrixAt<float> c) {
  for_operands(all_short(a, s.depth, s.rows) && all_short(b, s.depth, s.columns))
      .add_left_transposed(s, a, b, c);
}

}  // namespace

std::span<const ProductKernels> all_product_kernels() {
  static const std::vector<ProductKernels> all = [] {
    std::vector<ProductKernels> found{
        {for_operands(false).name, plain, right_transposed, add_left_transposed}};
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

}  // namespace halfscope::sim::backend::cpu
