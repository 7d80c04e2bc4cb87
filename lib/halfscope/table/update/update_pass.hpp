// SPDX-License-Identifier: Apache-2.0
// The fast pass over pairs, block by block: vectors where they can, one pair at a time what they
// leave. Internal to table/.
#pragma once

#include <cmath>
#include <limits>
#include <span>

#include "halfscope/table/count/count.hpp"
#include "halfscope/table/update/update_block.hpp"
#include "halfscope/table/update/update_table.hpp"

namespace halfscope {

/// Room for a block of pairs as binary32 numbers, beyond its end filled with zeros.
struct PairRoom {
  alignas(64) std::array<float, kPairBlock> weights, updates;
};

/// x, or NaN where it is no binary32 number.
inline float if_binary32(double x) {
  const auto narrow = static_cast<float>(x);
  return double{narrow} == x ? narrow : std::numeric_limits<float>::quiet_NaN();
}

/// Elements [first, first + n) as binary32 numbers: where they are, if they are that already, else
/// in `room`. What is no binary32 number is NaN there.
const std::byte* as_binary32(const TensorView& t, std::size_t first, std::size_t n,
                             std::span<float, kPairBlock> room);
/// The same of weights: rounded to format f where they are no binary32 numbers.
const std::byte* weights_as_binary32(const TensorView& t, Format f, std::size_t first,
                                     std::size_t n, std::span<float, kPairBlock> room);

/// The weights of a block, or a copy of them in `room` where they and the updates lie a multiple of
/// 2^28 bytes apart, as halves of one buffer can. There both fall into the same sets of the first
/// cache, and a processor that tells lines apart by a hash of the address's bits 12 to 27 (AMD's
/// way predictor: Lipp et al., Take A Way, 2020) takes one for the other: they drive each other
/// out.
const std::byte* apart_from(const std::byte* updates, const std::byte* weights, std::size_t n,
                            std::span<float, kPairBlock> room);

/// n to the next multiple of kPairStep.
constexpr std::size_t whole_steps(std::size_t n) {
  return (n + kPairStep - 1) / kPairStep * kPairStep;
}

/// This thread's. Empty between uses.
PairScratch& pair_scratch();

/// Moves the counts into the table.
void fold_pairs(PairScratch& scratch, UpdateTable& table);

/// After a block of n pairs. one_by_one(k): what is to be done for pair k, which it left over.
template <typename OneByOne>
void settle_block(std::size_t n, PairScratch& scratch, const OneByOne& one_by_one) {
  scratch.sums.taken += n - scratch.rare_count;
  for (std::size_t i = 0; i < scratch.rare_count; ++i) one_by_one(scratch.rare[i]);
}

/// One block of n pairs. one_by_one(k): what is to be done for pair k, which vectors leave. ahead:
/// 8 n bytes to be fetched meanwhile.
template <typename OneByOne>
void add_pair_block(Format f, const std::byte* weights, const std::byte* updates, int log2_factor,
                    std::size_t n, bool distributions, PairScratch& scratch,
                    const OneByOne& one_by_one, const std::byte* ahead = nullptr) {
  count_pair_block(f, weights, updates, std::ldexp(1.0f, log2_factor), whole_steps(n),
                   distributions, ahead, scratch);
  settle_block(n, scratch, one_by_one);
}

}  // namespace halfscope
