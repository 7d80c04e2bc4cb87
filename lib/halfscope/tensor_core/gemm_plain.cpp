// SPDX-License-Identifier: Apache-2.0
// The vector kernel's steps as plain loops, for processors without vector code.
#include <algorithm>
#include <vector>

#include "halfscope/number/bits.hpp"
#include "halfscope/tensor_core/gemm_job.hpp"

namespace halfscope::tensor_core {
namespace {

using halfscope::detail::bit_cast;

constexpr int kWidth = static_cast<int>(kPlainWidth);
constexpr Modes kCuda = {.nan = NanPolicy::cuda};

/// Finds the largest exponents of the products; at most kNoExponent if all are zero. Returns false
/// if the kernels do not support them.
bool find_largest(const std::uint32_t* a, const std::int16_t* b, int count, int* largest) {
  std::fill_n(largest, kWidth, kNoExponent);
  for (int i = 0; i < count; ++i, b += kWidth) {
    const int of_a = static_cast<std::int16_t>(a[i] & 0xFFFF);
    for (int j = 0; j < kWidth; ++j) largest[j] = std::max(largest[j], of_a + b[j]);
  }
  return std::none_of(largest, largest + kWidth,
                      [](int e) { return e < kLeastProduct && e > kNoExponent / 2; });
}

/// Adds up the products on grids of 1 / scale.
void add_products(const float* a, const float* b, int count, const float* scale,
                  std::int32_t* sum) {
  std::fill_n(sum, kWidth, 0);
  for (int i = 0; i < count; ++i, b += kWidth) {
    for (int j = 0; j < kWidth; ++j) sum[j] += static_cast<std::int32_t>(a[i] * b[j] * scale[j]);
  }
}

class Steps {
 public:
  Steps(const Unit& unit, Accumulator d)
      : unit_(unit), d_(d), floor_(d == Accumulator::binary16 ? unit.floor16 : unit.floor32) {}

  /// sums: encodings of C before, of D after. Returns false for unsupported products.
  bool step(const RowsOfA& a, std::size_t a_at, const PanelOfB& b, std::size_t b_at, int count,
            std::uint32_t* sums) const {
    int largest[kWidth];
    if (!find_largest(a.exponents + a_at, b.exponents + b_at, count, largest)) return false;
    float scale[kWidth];
    for (int j = 0; j < kWidth; ++j) {
      largest[j] = std::max(largest[j], floor_);
      const detail::Term c = detail::accumulated(unit_, d_, sums[j]);
      if (c.significand != 0) largest[j] = std::max(largest[j], c.exponent);
      // All products are zero if the power is too large for binary32.
      const int power = std::min(unit_.fraction_bits - largest[j], kBinary32.emax);
      scale[j] = bit_cast<float>(static_cast<std::uint32_t>(power + kBinary32.emax) << 23);
    }
    std::int32_t products[kWidth];
    add_products(a.values + a_at, b.values + b_at, count, scale, products);
    for (int j = 0; j < kWidth; ++j) sums[j] = result(products[j], sums[j], largest[j]);
    return true;
  }

 private:
  std::uint32_t result(std::int32_t products, std::uint32_t c, int largest) const {
    const Format f = format_of(d_);
    if ((c & f.magnitude_mask()) > f.largest_finite()) return c;
    const int grid = largest - unit_.fraction_bits;
    const std::int64_t cut = detail::on_grid(detail::accumulated(unit_, d_, c), grid);
    return detail::rounded(unit_, d_, products + cut, grid);
  }

  Unit unit_;
  Accumulator d_;
  int floor_;
};

}  // namespace

void run_plain_steps(const Unit& unit, Accumulator d, const RowsOfA& a, const PanelOfB& b,
                     std::span<const StepRange> steps, float* sums, std::uint8_t* by_chain) {
  const Steps kernel(unit, d);
  const Format f = format_of(d);
  std::uint32_t codes[kWidth];
  for (std::size_t i = 0; i < a.count; ++i, sums += kWidth) {
    for (int j = 0; j < kWidth; ++j) {
      codes[j] = static_cast<std::uint32_t>(from_float(f, sums[j], kCuda).bits);
    }
    for (std::size_t s = 0; s < steps.size() && by_chain[i] == 0; ++s) {
      const auto first = static_cast<std::size_t>(steps[s].first);
      const std::size_t b_at = first * kPlainWidth;
      if (!kernel.step(a, i * a.stride + first, b, b_at, steps[s].count, codes)) by_chain[i] = 1;
    }
    for (int j = 0; j < kWidth; ++j) {
      const std::uint64_t wide = convert(kBinary32, f, codes[j], kCuda).bits;
      sums[j] = bit_cast<float>(static_cast<std::uint32_t>(wide));
    }
  }
}

}  // namespace halfscope::tensor_core
