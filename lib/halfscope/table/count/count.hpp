// SPDX-License-Identifier: Apache-2.0
// Tensors to binade tables: the one pass.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "halfscope/number/format.hpp"
#include "halfscope/table/binade_table.hpp"

namespace halfscope {

/// Element types a table can be counted from.
enum class Dtype : std::uint8_t { f16, bf16, f32, f64, f8_e4m3, f8_e5m2 };
inline constexpr std::array kAllDtypes = {Dtype::f16, Dtype::bf16,    Dtype::f32,
                                          Dtype::f64, Dtype::f8_e4m3, Dtype::f8_e5m2};

/// Format of a dtype, and its name as safetensors writes it ("F32").
Format format_of(Dtype dtype);
std::string_view name_of(Dtype dtype);
/// Empty when no dtype has that name.
std::optional<Dtype> find_dtype(std::string_view name);

/// A tensor somebody else owns: `count` elements, little-endian, at any alignment.
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

/// The table of a tensor with the standard cuts; SIMD, and threads for large tensors.
/// threads: 0 takes all the machine has. The result is the same for every number of threads.
BinadeTable count_binades(const TensorView& tensor, int threads = 0);

/// The same with the caller's cuts, one element at a time: the reference, and the way to scales
/// that are no power of two.
BinadeTable count_binades_scalar(const TensorView& tensor, std::vector<std::uint64_t> cuts);

/// Shown beside a table and never merged into one: sums depend on their order. Both are taken over
/// finite values in fixed order (blocks of 4096 elements, then blocks in order) in binary64.
struct Moments {
  double mean = 0;         ///< of the finite values
  double sum_squares = 0;  ///< of the finite values
};
Moments moments(const TensorView& tensor);

}  // namespace halfscope
