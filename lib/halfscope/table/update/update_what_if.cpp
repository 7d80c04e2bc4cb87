// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/update/update_what_if.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>

#include "halfscope/array/environment.hpp"
#include "halfscope/number/arithmetic.hpp"
#include "halfscope/table/update/update_moves.hpp"
#include "halfscope/table/update/update_pair.hpp"
#include "halfscope/table/update/update_pass.hpp"
#include "halfscope/table/update/update_source.hpp"

namespace halfscope {
namespace {

/// Returns a table for the number of steps, from a cache of recent ones.
std::shared_ptr<const KahanReach> kahan_reach(Format f, std::uint64_t steps) {
  static std::mutex mutex;
  static std::map<std::pair<int, std::uint64_t>, std::shared_ptr<const KahanReach>> tables;
  const std::lock_guard lock(mutex);
  if (tables.size() > 8) tables.clear();
  std::shared_ptr<const KahanReach>& table = tables[{f.precision, steps}];
  if (!table) table = std::make_shared<const KahanReach>(f, steps);
  return table;
}

/// The parameters for one tensor, and the results of one thread.
class Question {
 public:
  Question(const TensorView& weights, const TensorView& updates, const WhatIfOptions& options)
      : weights_(weights),
        updates_(updates),
        options_(options),
        kahan_(kahan_reach(options.format, options.kahan_steps)) {}

  UpdateWhatIf empty() const {
    UpdateWhatIf answer;
    answer.kahan.steps = options_.kahan_steps;
    for (const int bits : options_.random_bits) answer.stochastic.push_back({.random_bits = bits});
    for (int k = options_.first_log2_factor; k <= options_.last_log2_factor; ++k) {
      answer.learning_rate[k];
    }
    return answer;
  }

  void add_range(UpdateWhatIf& answer, std::size_t first, std::size_t end) const {
    const FloatEnvironment environment(RoundingControl::nearest);
    PairRoom room;
    for (std::size_t i = first; i < end; i += kPairBlock) {
      const std::size_t n = std::min(kPairBlock, end - i);
      const std::byte* updates = updates_as_binary32(i, n, room.updates);
      add_counts(answer.bfloat16, kBfloat16, 0, i, n, updates, room);
      for (auto& [k, counts] : answer.learning_rate) {
        add_counts(counts, options_.format, k, i, n, updates, room);
      }
      for (std::size_t k = 0; k < n; ++k) add_moves(answer, i + k);
    }
  }

 private:
  /// Rounds updates wider than binary32.
  const std::byte* updates_as_binary32(std::size_t first, std::size_t n,
                                       std::span<float, kPairBlock> room) const {
    if (updates_.dtype != Dtype::f64) return as_binary32(updates_, first, n, room);
    std::fill(room.begin(), room.end(), 0.0f);
    for (std::size_t k = 0; k < n; ++k) room[k] = std::bit_cast<float>(update_at(first + k));
    return std::as_bytes(room).data();
  }
  std::uint32_t update_at(std::size_t i) const {
    return static_cast<std::uint32_t>(
        convert(kBinary32, format_of(updates_.dtype), element(updates_, i)).bits);
  }
  std::uint64_t weight_at(Format f, std::size_t i) const {
    return convert(f, format_of(weights_.dtype), element(weights_, i)).bits;
  }

  void add_counts(UpdateCounts& counts, Format f, int log2_factor, std::size_t first, std::size_t n,
                  const std::byte* updates, PairRoom& room) const {
    UpdateTable table;
    PairScratch& scratch = pair_scratch();
    const auto one = [&](std::size_t k) {
      const Update update = recorded_update(kBinary32, update_at(first + k));
      add_pair(table, f, weight_at(f, first + k), times_power_of_two(update, log2_factor), false);
    };
    add_pair_block(f, weights_as_binary32(weights_, f, first, n, room.weights), updates,
                   log2_factor, n, false, scratch, one);
    fold_pairs(scratch, table);
    counts += table.counts;
  }

  void add_moves(UpdateWhatIf& answer, std::size_t i) const {
    const std::uint32_t u32 = update_at(i);
    const std::uint64_t w16 = weight_at(options_.format, i);
    const Unpacked update = unpack(kBinary32, u32);
    const bool weight_is_finite =
        (w16 & options_.format.magnitude_mask()) <= options_.format.largest_finite();
    if (update.kind != Kind::finite || !weight_is_finite) return;
    add_stochastic(answer, w16, u32);
    add_kahan(answer.kahan, w16, update);
    const auto master = static_cast<std::uint32_t>(weight_at(kBinary32, i));
    add_first_move(answer, std::bit_cast<float>(master), std::bit_cast<float>(u32));
  }

  static Update times_power_of_two(Update update, int k) {
    if (update.exact.kind != Kind::finite) return update;
    Unpacked& u = update.exact;
    u.exponent += k;
    update.binary32 = round_pack(kBinary32, u.negative, u.significand, u.exponent).bits;
    return update;
  }

  void add_stochastic(UpdateWhatIf& answer, std::uint64_t w16, std::uint32_t u32) const {
    const RandomMove move = random_move(options_.format, w16, u32);
    for (StochasticMoves& s : answer.stochastic) {
      const std::uint64_t moves = moves_above(move, s.random_bits);
      s.moves_high += __builtin_add_overflow(s.moves_low, moves, &s.moves_low) ? 1 : 0;
      if (moves == 0) ++s.never;
      if (moves_truncated(move, s.random_bits) == 0) ++s.never_truncated;
    }
  }

  void add_kahan(KahanMoves& moves, std::uint64_t w16, const Unpacked& u) const {
    const Format f = options_.format;
    const std::uint64_t u16 = round_pack(f, u.negative, u.significand, u.exponent).bits;
    const auto moves_by = [&](std::uint64_t x) {  // as values: -0 is 0
      const std::uint64_t sum = add_encodings(f, w16, x);
      return sum != w16 && ((sum | w16) & f.magnitude_mask()) != 0;
    };
    if (options_.kahan_steps == 0) return;
    if (moves_by(u16)) ++moves.moved_plain;
    if (moves_by(kahan_->after_steps(u16))) ++moves.moved;
  }

  static std::uint64_t add_encodings(Format f, std::uint64_t a, std::uint64_t b) {
    return halfscope::add(f, a, b).bits;
  }

  void add_first_move(UpdateWhatIf& answer, float master, float update) const {
    // A master weight that is infinite in binary32 has an infinite copy, which is skipped.
    const std::uint64_t n = first_move(options_.format, master, update);
    if (n == 0) {
      ++answer.master_never;
    } else {
      ++answer.first_move[detail::bit_width(n) - 1];
    }
  }

  TensorView weights_, updates_;
  const WhatIfOptions& options_;
  std::shared_ptr<const KahanReach> kahan_;
};

void require(const WhatIfOptions& options) {
  for (const int bits : options.random_bits) {
    if (bits < 1 || bits > 32) {
      throw std::invalid_argument("what_if: " + std::to_string(bits) +
                                  " random bits, expected 1 to 32");
    }
  }
  constexpr int kMost = 64;
  const int first = options.first_log2_factor, last = options.last_log2_factor;
  if (first < -kMost || last > kMost || first > last) {
    throw std::invalid_argument("what_if: learning rates times 2^" + std::to_string(first) +
                                " to 2^" + std::to_string(last) +
                                ", expected factors in 2^-64 to 2^64");
  }
}

}  // namespace

double StochasticMoves::expected_moves() const {
  return std::ldexp(static_cast<double>(moves_high), 64 - random_bits) +
         std::ldexp(static_cast<double>(moves_low), -random_bits);
}

StochasticMoves& StochasticMoves::operator+=(const StochasticMoves& other) {
  if (random_bits != other.random_bits) {
    throw std::invalid_argument("what_if: answers for " + std::to_string(random_bits) + " and " +
                                std::to_string(other.random_bits) + " random bits do not add");
  }
  const bool carry = __builtin_add_overflow(moves_low, other.moves_low, &moves_low);
  moves_high += other.moves_high + (carry ? 1 : 0);
  never += other.never;
  never_truncated += other.never_truncated;
  return *this;
}

KahanMoves& KahanMoves::operator+=(const KahanMoves& other) {
  if (steps != other.steps) {
    throw std::invalid_argument("what_if: answers for " + std::to_string(steps) + " and " +
                                std::to_string(other.steps) + " equal updates do not add");
  }
  moved += other.moved;
  moved_plain += other.moved_plain;
  return *this;
}

UpdateWhatIf& UpdateWhatIf::operator+=(const UpdateWhatIf& other) {
  if (other.stochastic.empty() && other.bfloat16.pairs == 0) return *this;
  if (stochastic.empty() && bfloat16.pairs == 0) return *this = other;
  if (stochastic.size() != other.stochastic.size()) {
    throw std::invalid_argument("what_if: answers for other numbers of random bits do not add");
  }
  for (std::size_t i = 0; i < stochastic.size(); ++i) stochastic[i] += other.stochastic[i];
  kahan += other.kahan;
  bfloat16 += other.bfloat16;
  for (const auto& [k, counts] : other.learning_rate) learning_rate[k] += counts;
  for (const auto& [n, count] : other.first_move) first_move[n] += count;
  master_never += other.master_never;
  return *this;
}

UpdateWhatIf what_if(const TensorView& weights, const TensorView& updates,
                     const WhatIfOptions& options) {
  require_pairs(weights, updates, options.format);
  require(options);
  constexpr std::size_t kGrain = std::size_t{1} << 14;
  const Question question(weights, updates, options);
  UpdateWhatIf answer = question.empty();
  answer += reduce_pairs<UpdateWhatIf>(weights.count, kGrain, options.threads,
                                       [&](UpdateWhatIf& sum, std::size_t first, std::size_t end) {
                                         UpdateWhatIf part = question.empty();
                                         question.add_range(part, first, end);
                                         sum += part;
                                       });
  return answer;
}

}  // namespace halfscope
