// SPDX-License-Identifier: Apache-2.0
// Counts tensors into binade tables, in one pass.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "halfscope/number/format.hpp"
#include "halfscope/table/binade_table.hpp"

namespace halfscope {

/// Element types of tensors that can be counted.
enum class Dtype : std::uint8_t { f16, bf16, f32, f64, f8_e4m3, f8_e5m2 };
inline constexpr std::array kAllDtypes = {Dtype::f16, Dtype::bf16,    Dtype::f32,
                                          Dtype::f64, Dtype::f8_e4m3, Dtype::f8_e5m2};

/// Format of a dtype; name_of(): its name in safetensors files ("F32").
Format format_of(Dtype dtype);
std::string_view name_of(Dtype dtype);
/// Returns an empty optional if no dtype has that name.
std::optional<Dtype> find_dtype(std::string_view name);

/// A tensor in memory owned by others: `count` elements, little-endian, at any alignment.
struct TensorView {
  Dtype dtype = Dtype::f32;
  const std::byte* data = nullptr;
  std::size_t count = 0;

  std::size_t bytes() const { return count * static_cast<std::size_t>(format_of(dtype).width / 8); }
};

inline TensorView view_of(std::span<const float> values) {
  return {Dtype::f32, std::as_bytes(values).data(), values.size()};
}
inline TensorView view_of(std::span<const double> values) {
  return {Dtype::f64, std::as_bytes(values).data(), values.size()};
}

/// Returns the table of a tensor with the standard cuts; uses SIMD, and threads for large tensors.
/// threads: 0 for one per core. The result is the same for every number of threads.
BinadeTable count_binades(const TensorView& tensor, int threads = 0);

/// Counts one element at a time with any cuts: the reference, and for scales not powers of two.
BinadeTable count_binades_scalar(const TensorView& tensor, std::vector<std::uint64_t> cuts);

/// Moments of a tensor, reported with its table but never merged, because sums depend on their
/// order. Computed from the finite values in binary64, in a fixed order (blocks of 4096 elements,
/// then blocks in order).
struct Moments {
  double mean = 0;         ///< mean of the finite values
  double sum_squares = 0;  ///< sum of their squares
};
Moments moments(const TensorView& tensor);

}  // namespace halfscope
