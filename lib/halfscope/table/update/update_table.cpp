// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/update/update_table.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

#include "halfscope/array/environment.hpp"
#include "halfscope/table/update/update_pair.hpp"
#include "halfscope/table/update/update_pass.hpp"
#include "halfscope/table/update/update_sgd.hpp"
#include "halfscope/table/update/update_source.hpp"

namespace halfscope {
namespace {

template <typename Key, typename Value>
void add_map(std::map<Key, Value>& to, const std::map<Key, Value>& from) {
  for (const auto& [key, value] : from) to[key] += value;
}

/// The two arrays of a block, as binary32 numbers.
struct Block {
  const std::byte *weights, *updates;
  const std::byte* ahead = nullptr;  ///< memory to prefetch; null: none
};

/// Counts all blocks. take(first, n, room, scratch) counts a block except unsupported pairs;
/// exactly(i) returns the Update of such a pair.
template <typename Take, typename Exactly>
UpdateTable count_blocks(const TensorView& weights, const UpdateOptions& options, const Take& take,
                         const Exactly& exactly) {
  constexpr std::size_t kGrain = std::size_t{1} << 18;  // amortises the cost of folding
  constexpr std::size_t kFold = std::size_t{1} << 30;   // limit of the 32-bit counts
  const Format from = format_of(weights.dtype);
  const auto add_some = [&](UpdateTable& table, std::size_t first, std::size_t end) {
    const FloatEnvironment environment(RoundingControl::nearest);
    PairScratch& scratch = pair_scratch();
    PairRoom room;
    for (std::size_t i = first; i < end; i += kPairBlock) {
      const std::size_t n = std::min(kPairBlock, end - i);
      take(i, n, room, scratch);
      const auto one = [&](std::size_t k) {
        const std::uint64_t w16 = convert(options.format, from, element(weights, i + k)).bits;
        add_pair(table, options.format, w16, exactly(i + k), options.distributions);
      };
      settle_block(n, scratch, one);
    }
    fold_pairs(scratch, table);
  };
  const auto add_range = [&](UpdateTable& table, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; i += kFold) add_some(table, i, std::min(i + kFold, end));
  };
  return reduce_pairs<UpdateTable>(weights.count, kGrain, options.threads, add_range);
}

/// stage(first, n, room) returns the Block.
template <typename Stage, typename Exactly>
UpdateTable count_pairs(const TensorView& weights, const UpdateOptions& options, const Stage& stage,
                        const Exactly& exactly) {
  const auto take = [&](std::size_t first, std::size_t n, PairRoom& room, PairScratch& scratch) {
    const Block block = stage(first, n, room);
    count_pair_block(options.format, block.weights, block.updates, 1, whole_steps(n),
                     options.distributions, block.ahead, scratch);
  };
  return count_blocks(weights, options, take, exactly);
}

/// update(i) returns the update in binary64, exactly; NaN if that is impossible.
template <typename OfPair>
void stage_updates(std::size_t first, std::size_t n, PairRoom& room, const OfPair& update) {
  room.updates.fill(0);
  for (std::size_t k = 0; k < n; ++k) room.updates[k] = if_binary32(update(first + k));
}

}  // namespace

void require_pairs(const TensorView& weights, const TensorView& other, Format weight_format) {
  require_weight_format(weight_format);
  if (weights.count != other.count) {
    throw std::invalid_argument("updates: " + std::to_string(weights.count) + " weights and " +
                                std::to_string(other.count) + " updates, expected as many");
  }
  for (const TensorView* t : {&weights, &other}) {
    if (format_of(t->dtype).width < 16) {
      throw std::invalid_argument("updates: elements of dtype " + std::string(name_of(t->dtype)) +
                                  ", expected F16, BF16, F32 or F64");
    }
  }
}

UpdateOutcomes& UpdateOutcomes::operator+=(const UpdateOutcomes& other) {
  underflow += other.underflow;
  swamped += other.swamped;
  applied += other.applied;
  exact += other.exact;
  overflow += other.overflow;
  return *this;
}

UpdateCell& UpdateCell::operator+=(const UpdateCell& other) {
  count += other.count;
  lost += other.lost;
  return *this;
}

UpdateCounts& UpdateCounts::operator+=(const UpdateCounts& other) {
  if (__builtin_add_overflow(pairs, other.pairs, &pairs)) {  // no other count is larger
    throw std::overflow_error(
        "update table: more than 2^64 pairs of a weight and its update in all; the log has wrong "
        "counts, count it again");
  }
  zero += other.zero;
  nonfinite += other.nonfinite;
  half += other.half;
  fused += other.fused;
  rule_2048 += other.rule_2048;
  return *this;
}

UpdateTable& UpdateTable::operator+=(const UpdateTable& other) {
  counts += other.counts;
  add_map(cells, other.cells);
  add_map(ratios, other.ratios);
  add_map(errors, other.errors);
  return *this;
}

UpdateTable count_updates(const TensorView& weights, const TensorView& updates,
                          const UpdateOptions& options) {
  require_pairs(weights, updates, options.format);
  const Format from = format_of(updates.dtype);
  const auto stage = [&](std::size_t first, std::size_t n, PairRoom& room) {
    const std::byte* const w = weights_as_binary32(weights, options.format, first, n, room.weights);
    const std::byte* const u = as_binary32(updates, first, n, room.updates);
    const std::byte* const apart = apart_from(u, w, n, room.weights);
    // Order of prefetching: two blocks of weights, then two blocks of updates.
    const bool is_copied = apart != w && first + 4 * kPairBlock <= weights.count;
    const std::byte* const ahead =
        first / kPairBlock % 2 == 0 ? w + 8 * kPairBlock : u + 4 * kPairBlock;
    return Block{apart, u, is_copied ? ahead : nullptr};
  };
  return count_pairs(weights, options, stage,
                     [&](std::size_t i) { return recorded_update(from, element(updates, i)); });
}

UpdateTable count_sgd_updates(const TensorView& weights, const TensorView& gradients, double lr,
                              double scale, const UpdateOptions& options) {
  require_pairs(weights, gradients, options.format);
  const SgdStep step(lr, scale);
  const Format from = format_of(gradients.dtype);
  const SgdBlock block(options.format,
                       std::bit_cast<float>(static_cast<std::uint32_t>(step.rate())), scale);
  const auto take = [&](std::size_t first, std::size_t n, PairRoom& room, PairScratch& scratch) {
    block.count(weights_as_binary32(weights, options.format, first, n, room.weights),
                as_binary32(gradients, first, n, room.updates), n, options.distributions, scratch);
  };
  return count_blocks(weights, options, take,
                      [&](std::size_t i) { return step.update(from, element(gradients, i)); });
}

UpdateTable count_differences(const TensorView& before, const TensorView& after,
                              const UpdateOptions& options) {
  require_pairs(before, after, options.format);
  const auto difference = [&](std::size_t i) {
    return to_double(format_of(after.dtype), element(after, i)) -
           to_double(format_of(before.dtype), element(before, i));
  };
  const auto stage = [&](std::size_t first, std::size_t n, PairRoom& room) {
    stage_updates(first, n, room, difference);
    return Block{weights_as_binary32(before, options.format, first, n, room.weights),
                 std::as_bytes(std::span(room.updates)).data()};
  };
  return count_pairs(before, options, stage, [&](std::size_t i) {
    return recorded_update(kBinary64, detail::bit_cast<std::uint64_t>(difference(i)));
  });
}

}  // namespace halfscope
