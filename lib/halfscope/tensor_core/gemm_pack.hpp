// SPDX-License-Identifier: Apache-2.0
// Operands of a product in the kernels' layout.
#pragma once

#include <cstdint>
#include <vector>

#include "halfscope/tensor_core/gemm_job.hpp"
#include "halfscope/tensor_core/matrix.hpp"

namespace halfscope::tensor_core {

/// Packed rows of A, see RowsOfA.
class PackedRows {
 public:
  PackedRows(std::int64_t rows, std::int64_t k);

  /// Packs row i of `a`, elements of format f. Different rows may be packed concurrently.
  void pack(Format f, MatrixAt<const float> a, std::int64_t i);
  RowsOfA rows(std::int64_t first, std::int64_t count) const;
  /// Returns by_chain for the rows from `first` on: nonzero for rows with unsupported numbers.
  const std::uint8_t* by_chain(std::int64_t first) const { return by_chain_.data() + first; }

 private:
  std::size_t k_;
  std::vector<float> values_;
  std::vector<std::uint32_t> exponents_;
  std::vector<std::uint8_t> by_chain_;
};

/// Packed columns of B, see PanelOfB.
class PackedPanel {
 public:
  PackedPanel(std::size_t width, std::int64_t k);

  /// Packs `columns` columns from `first` on, at most the width; pads with zeros.
  void pack(Format f, MatrixAt<const float> b, std::int64_t first, std::int64_t columns);
  PanelOfB panel() const { return {values_.data(), exponents_.data()}; }
  /// Returns true if the kernels support all numbers.
  bool usable() const { return usable_; }

 private:
  std::size_t width_;
  std::int64_t k_;
  std::vector<float> values_;
  std::vector<std::int16_t> exponents_;
  bool usable_ = true;
};

}  // namespace halfscope::tensor_core
