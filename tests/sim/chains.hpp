// SPDX-License-Identifier: Apache-2.0
// Sums of products by the scalar model of a Tensor Core, one chain an output.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "halfscope/number/convert.hpp"
#include "halfscope/tensor_core/mma.hpp"
#include "sim/backend/precision.hpp"

namespace sim_test {

using namespace halfscope;

/// What a Tensor Core is tested with.
struct CoreCase {
  const char* accumulate;
  Dtype dtype;
};
inline constexpr CoreCase kCores[] = {{"tensor-core:volta", Dtype::f16},
                                      {"tensor-core:ampere", Dtype::bf16},
                                      {"tensor-core:hopper", Dtype::f16},
                                      {"tensor-core:hopper", Dtype::bf16}};

using Draw = std::function<float()>;

/// Normal numbers of many binades.
inline Draw many_binades(std::uint32_t seed) {
  return [random = std::mt19937(seed), draw = std::normal_distribution<float>(),
          binade = std::uniform_int_distribution<int>(-9, 4)]() mutable {
    return std::ldexp(draw(random), binade(random));
  };
}

/// 1 or -1.
inline Draw signs(std::uint32_t seed) {
  return [random = std::mt19937(seed)]() mutable { return random() % 2 == 0 ? 1.0F : -1.0F; };
}

/// Numbers near 2^-8, and a few of 2^14 or -2^14. Where the large ones of a chain cancel, the sum
/// shows which others were in a step with one: the order, and the grid that cuts them. Rounding to
/// 16 bits hides both in most other sums. Their products are such if the other operands are signs.
inline Draw cancelling(std::uint32_t seed) {
  return [random = std::mt19937(seed), sign = signs(seed + 1)]() mutable {
    if (random() % 20 == 0) return sign() * 0x1p14F;
    return sign() * (1.0F + static_cast<float>(random() % 1024) / 1024.0F) * 0x1p-8F;
  };
}

/// The operands of each output's products, in their order.
class Chains {
 public:
  Chains(const CoreCase& core, std::size_t outputs)
      : format_(format_of(core.dtype)),
        unit_(sim::backend::find_accumulation(core.accumulate)->unit_for(core.dtype).value()),
        a_(outputs),
        b_(outputs) {}

  void add(std::int64_t to, float a, float b) {
    a_[static_cast<std::size_t>(to)].push_back(encoding(a));
    b_[static_cast<std::size_t>(to)].push_back(encoding(b));
  }

  /// How many of `found` are not their chain plus more(i) in binary32, rounded to the format.
  std::size_t differ(const std::vector<float>& found,
                     const std::function<float(std::size_t)>& more = {}) const {
    if (found.size() != a_.size()) return found.size() + 1;
    std::size_t count = 0;
    for (std::size_t i = 0; i < a_.size(); ++i) {
      float sum = std::bit_cast<float>(tensor_core::chain_of(format_, format_)(
          unit_, tensor_core::Accumulator::binary32, a_[i].data(), b_[i].data(),
          static_cast<int>(a_[i].size()), 0));
      if (more) sum += more(i);
      count += std::bit_cast<std::uint32_t>(found[i]) != rounded(sum);
    }
    return count;
  }

 private:
  std::uint16_t encoding(float x) const {
    return static_cast<std::uint16_t>(
        convert(format_, kBinary32, std::bit_cast<std::uint32_t>(x)).bits);
  }
  /// As binary32.
  std::uint32_t rounded(float x) const {
    return static_cast<std::uint32_t>(convert(kBinary32, format_, encoding(x)).bits);
  }

  Format format_;
  tensor_core::Unit unit_;
  std::vector<std::vector<std::uint16_t>> a_, b_;
};

}  // namespace sim_test
