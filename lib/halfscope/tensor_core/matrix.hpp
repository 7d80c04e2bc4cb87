// SPDX-License-Identifier: Apache-2.0
// Matrices in memory, read in any direction.
#pragma once

#include <cstdint>

namespace halfscope::tensor_core {

/// Element (i, j) is at data[i * row + j * column]: row-major with column 1, transposed with row 1.
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

}  // namespace halfscope::tensor_core
