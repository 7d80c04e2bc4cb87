// SPDX-License-Identifier: Apache-2.0
// The fast pass over pairs, block by block: vector code, and one pair at a time for unsupported
// pairs. Internal to table/.
#pragma once

#include <cmath>
#include <limits>
#include <span>

#include "halfscope/table/count/count.hpp"
#include "halfscope/table/update/update_block.hpp"
#include "halfscope/table/update/update_table.hpp"

namespace halfscope {

/// Memory for a block of pairs as binary32 numbers, padded with zeros.
struct PairRoom {
  alignas(64) std::array<float, kPairBlock> weights, updates;
};

/// Returns x, or NaN if binary32 cannot represent it.
inline float if_binary32(double x) {
  const auto narrow = static_cast<float>(x);
  return double{narrow} == x ? narrow : std::numeric_limits<float>::quiet_NaN();
}

/// Returns the elements [first, first + n) as binary32: in place if they are binary32, else
/// converted in `room`. Elements that binary32 cannot represent become NaN.
const std::byte* as_binary32(const TensorView& t, std::size_t first, std::size_t n,
                             std::span<float, kPairBlock> room);
/// Returns weights as binary32; weights that binary32 cannot represent are rounded to format f.
const std::byte* weights_as_binary32(const TensorView& t, Format f, std::size_t first,
                                     std::size_t n, std::span<float, kPairBlock> room);

/// Returns the weights of a block, copied to `room` if weights and updates are a multiple of 2^28
/// bytes apart, as the halves of one buffer can be. Otherwise both would use the same sets of the
/// L1 cache, and a processor that predicts the way by a hash of address bits 12 to 27 (AMD: Lipp et
/// al., Take A Way, 2020) would mistake them for each other and evict both.
const std::byte* apart_from(const std::byte* updates, const std::byte* weights, std::size_t n,
                            std::span<float, kPairBlock> room);

/// Rounds n up to a multiple of kPairStep.
constexpr std::size_t whole_steps(std::size_t n) {
  return (n + kPairStep - 1) / kPairStep * kPairStep;
}

/// Returns this thread's scratch. Empty between uses.
PairScratch& pair_scratch();

/// Moves the counts into the table.
void fold_pairs(PairScratch& scratch, UpdateTable& table);

/// Finishes a block of n pairs: calls one_by_one(k) for each pair k not counted by vector code.
template <typename OneByOne>
void settle_block(std::size_t n, PairScratch& scratch, const OneByOne& one_by_one) {
  scratch.sums.taken += n - scratch.rare_count;
  for (std::size_t i = 0; i < scratch.rare_count; ++i) one_by_one(scratch.rare[i]);
}

/// Counts one block of n pairs; calls one_by_one(k) for each pair k that the vector code does not
/// count. ahead: 8 n bytes to prefetch, or null for none.
template <typename OneByOne>
void add_pair_block(Format f, const std::byte* weights, const std::byte* updates, int log2_factor,
                    std::size_t n, bool distributions, PairScratch& scratch,
                    const OneByOne& one_by_one, const std::byte* ahead = nullptr) {
  count_pair_block(f, weights, updates, std::ldexp(1.0f, log2_factor), whole_steps(n),
                   distributions, ahead, scratch);
  settle_block(n, scratch, one_by_one);
}

}  // namespace halfscope
