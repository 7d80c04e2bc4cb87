// SPDX-License-Identifier: Apache-2.0
#include "halfscope/tensor_core/gemm_pack.hpp"

#include <algorithm>

#include "halfscope/number/bits.hpp"

namespace halfscope::tensor_core {
namespace {

/// Uses only integers, so the caller's floating-point environment does not matter.
std::uint32_t magnitude_of(float x) {
  return halfscope::detail::bit_cast<std::uint32_t>(x) & 0x7FFFFFFF;
}

int exponent_of(int emin, float x) {
  const std::uint32_t magnitude = magnitude_of(x);
  const int exponent = static_cast<int>(magnitude >> 23) - kBinary32.emax;
  return magnitude == 0 ? kNoExponent : std::max(exponent, emin);
}

bool is_outside(float x) {
  constexpr std::uint32_t kBeyond = static_cast<std::uint32_t>(kLargestExponent + 1 + 127) << 23;
  return magnitude_of(x) >= kBeyond;
}

}  // namespace

PackedRows::PackedRows(std::int64_t rows, std::int64_t k)
    : k_(static_cast<std::size_t>(k)),
      values_(static_cast<std::size_t>(rows) * k_),
      exponents_(values_.size()),
      by_chain_(static_cast<std::size_t>(rows)) {}

void PackedRows::pack(Format f, MatrixAt<const float> a, std::int64_t i) {
  const auto row = static_cast<std::size_t>(i);
  float* const values = values_.data() + row * k_;
  std::uint32_t* const exponents = exponents_.data() + row * k_;
  const int emin = f.emin();
  bool outside = false;
  for (std::size_t k = 0; k < k_; ++k) {
    values[k] = a.at(i, static_cast<std::int64_t>(k));
    const auto exponent = static_cast<std::uint32_t>(exponent_of(emin, values[k])) & 0xFFFF;
    exponents[k] = exponent << 16 | exponent;
    outside |= is_outside(values[k]);
  }
  by_chain_[row] = outside ? 1 : 0;
}

RowsOfA PackedRows::rows(std::int64_t first, std::int64_t count) const {
  const auto row = static_cast<std::size_t>(first);
  return {values_.data() + row * k_, exponents_.data() + row * k_, k_,
          static_cast<std::size_t>(count)};
}

PackedPanel::PackedPanel(std::size_t width, std::int64_t k)
    : width_(width),
      k_(k),
      values_(width * static_cast<std::size_t>(k)),
      exponents_(values_.size(), kNoExponent) {}

void PackedPanel::pack(Format f, MatrixAt<const float> b, std::int64_t first,
                       std::int64_t columns) {
  const int emin = f.emin();
  bool outside = false;
  for (std::int64_t k = 0; k < k_; ++k) {
    float* const values = values_.data() + static_cast<std::size_t>(k) * width_;
    std::int16_t* const exponents = exponents_.data() + static_cast<std::size_t>(k) * width_;
    for (std::int64_t j = 0; j < columns; ++j) {
      values[j] = b.at(k, first + j);
      exponents[j] = static_cast<std::int16_t>(exponent_of(emin, values[j]));
      outside |= is_outside(values[j]);
    }
  }
  usable_ = !outside;
}

}  // namespace halfscope::tensor_core
