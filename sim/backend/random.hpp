// SPDX-License-Identifier: Apache-2.0
// Named sequences of random numbers. A number depends on the seed, the sequence's name and the
// position in the sequence only.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <numeric>
#include <string_view>
#include <vector>

#include "halfscope/number/random.hpp"

namespace halfscope::sim::backend {

/// FNV-1a, 64 bits: G. Fowler, L. C. Noll, K.-P. Vo, D. Eastlake: The FNV non-cryptographic hash
/// algorithm.
constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

/// Philox4x32-10 with the seed as key. The counter's low half is the number of the block, its high
/// half is the hash of the name.
class Random {
 public:
  Random(std::uint64_t seed, std::string_view name) : seed_(seed), stream_(hash_of(name)) {}

  std::uint32_t word() {
    if (next_ % 4 == 0) refill();
    return block_.words[next_++ % 4];
  }
  /// Uniform in [0, 1), in steps of 2^-32.
  double uniform() { return word() * 0x1p-32; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Uniform in [0, n): the high half of a product; the bias is below n * 2^-32.
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>((std::uint64_t{word()} * n) >> 32);
  }
  /// N(0, 1) (G. E. P. Box, M. E. Muller 1958); consumes two words.
  double normal() {
    const double radius = std::sqrt(-2 * std::log((word() + 0.5) * 0x1p-32));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  void refill() {
    const std::uint64_t block = next_ / 4;
    const PhiloxBlock counter = {
        {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
         static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)}};
    block_ = philox4x32(counter, static_cast<std::uint32_t>(seed_),
                        static_cast<std::uint32_t>(seed_ >> 32));
  }

  std::uint64_t seed_, stream_, next_ = 0;
  PhiloxBlock block_{};
};

/// Returns 0 to n - 1 in random order (Fisher and Yates).
inline std::vector<std::uint32_t> permutation(std::uint32_t n, Random random) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  for (std::uint32_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace halfscope::sim::backend
