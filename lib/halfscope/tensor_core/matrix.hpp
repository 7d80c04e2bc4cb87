// SPDX-License-Identifier: Apache-2.0
// Matrices in memory with arbitrary strides.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace halfscope::tensor_core {

/// Element (i, j) is data[i * row + j * column]: row-major if column is 1, transposed if row is 1.
template <class T>
struct MatrixAt {
  T* data;
  std::int64_t row, column;

  T& at(std::int64_t i, std::int64_t j) const { return data[i * row + j * column]; }
};

/// The extents of D (m x n), A (m x k) and B (k x n).
struct GemmShape {
  std::int64_t m, n, k;
};

inline void require_extents(const GemmShape& s) {
  if (s.m >= 0 && s.n >= 0 && s.k >= 0) return;
  throw std::invalid_argument("halfscope::tensor_core: a product of " + std::to_string(s.m) +
                              " x " + std::to_string(s.n) + " x " + std::to_string(s.k) +
                              "; expected extents of 0 or more");
}

}  // namespace halfscope::tensor_core
