// SPDX-License-Identifier: Apache-2.0
// Operands of a product as the kernel reads them.
#pragma once

#include <cstdint>
#include <vector>

#include "halfscope/tensor_core/gemm_job.hpp"
#include "halfscope/tensor_core/matrix.hpp"

namespace halfscope::tensor_core {

/// Rows of A, packed: see RowsOfA.
class PackedRows {
 public:
  PackedRows(std::int64_t rows, std::int64_t k);

  /// Row i of `a`, elements of format f; different rows at once from any threads.
  void pack(Format f, MatrixAt<const float> a, std::int64_t i);
  RowsOfA rows(std::int64_t first, std::int64_t count) const;
  /// by_chain of rows from `first` on: not 0 where the kernels do not take a number.
  const std::uint8_t* by_chain(std::int64_t first) const { return by_chain_.data() + first; }

 private:
  std::size_t k_;
  std::vector<float> values_;
  std::vector<std::uint32_t> exponents_;
  std::vector<std::uint8_t> by_chain_;
};

/// Columns of B, packed: see PanelOfB.
class PackedPanel {
 public:
  PackedPanel(std::size_t width, std::int64_t k);

  /// `columns` columns from `first` on, at most the width; zeros beside them.
  void pack(Format f, MatrixAt<const float> b, std::int64_t first, std::int64_t columns);
  PanelOfB panel() const { return {values_.data(), exponents_.data()}; }
  /// Do the kernels take all numbers?
  bool usable() const { return usable_; }

 private:
  std::size_t width_;
  std::int64_t k_;
  std::vector<float> values_;
  std::vector<std::int16_t> exponents_;
  bool usable_ = true;
};

}  // namespace halfscope::tensor_core
