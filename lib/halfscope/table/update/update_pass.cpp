// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/update/update_pass.hpp"

#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "halfscope/array/array.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/table/update/update_source.hpp"

namespace halfscope {
namespace {

/// Converts binary16 and bfloat16 to binary32, exactly.
void widen(const TensorView& t, std::size_t first, std::size_t n, std::span<float> room) {
  std::array<std::uint16_t, kPairBlock> narrow;
  std::memcpy(narrow.data(), t.data + 2 * first, 2 * n);
  convert(format_of(t.dtype), std::span<const std::uint16_t>(narrow).first(n), room.first(n),
          {.threads = 1});
}

const std::byte* filled(std::span<float, kPairBlock> room, std::size_t n) {
  std::fill(room.begin() + static_cast<std::ptrdiff_t>(n), room.end(), 0.0f);
  return std::as_bytes(room).data();
}

bool is_there_already(const TensorView& t, std::size_t n) {
  return t.dtype == Dtype::f32 && n % kPairStep == 0;
}

template <typename OfBinary64>
const std::byte* staged(const TensorView& t, std::size_t first, std::size_t n,
                        std::span<float, kPairBlock> room, const OfBinary64& of_binary64) {
  if (t.dtype == Dtype::f32) {
    std::memcpy(room.data(), t.data + 4 * first, 4 * n);
  } else if (t.dtype == Dtype::f64) {
    for (std::size_t i = 0; i < n; ++i) room[i] = of_binary64(element(t, first + i));
  } else {
    widen(t, first, n, room);
  }
  return filled(room, n);
}

/// One column of a row: kept and lost, for fractions of u at least and less than those of w16.
using Column = std::array<std::uint32_t, 4>;

/// Returns a column and clears it; returns all zeros for most columns.
Column take_column(PairScratch& scratch, std::size_t at) {
  Column sum{};
  for (auto& cells : scratch.cells) {
    std::uint32_t* column = cells.data() + at;
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += column[k];
  }
  if (sum != Column{}) {
    for (auto& cells : scratch.cells) std::fill_n(cells.data() + at, sum.size(), 0);
  }
  return sum;
}

/// Adds one row of bins to the table and clears it.
void fold_row(PairScratch& scratch, std::uint32_t row, UpdateTable& table) {
  take_column(scratch, std::size_t{row} * kUpdateRow);  // pairs (0, 0), which do not count
  const bool zero_weight = row == 0;
  const int weight = static_cast<int>(row) - kFieldBias;
  for (std::uint32_t column = kFirstUpdate + kFieldBias; column < kEndField; ++column) {
    const Column n = take_column(scratch, row * kUpdateRow + 4 * column);
    if (n == Column{}) continue;
    const int update = static_cast<int>(column) - kFieldBias;
    const UpdateCell not_less = {std::uint64_t{n[0]} + n[1], n[1]};
    const UpdateCell less = {std::uint64_t{n[2]} + n[3], n[3]};
    UpdateCell& cell = table.cells[{zero_weight ? UpdateTable::kZeroWeight : weight, update}];
    (cell += not_less) += less;
    if (zero_weight) continue;
    if (not_less.count != 0) table.ratios[update - weight] += not_less;
    if (less.count != 0) table.ratios[update - weight - 1] += less;
  }
}

void fold_sums(const PairSums& sums, UpdateCounts& counts) {
  counts.pairs += sums.taken;
  counts.zero += sums.taken - sums.live;
  counts.rule_2048 += sums.rule;
  counts.half += {.underflow = sums.underflow,
                  .swamped = sums.lost - sums.underflow,
                  .applied = sums.live - sums.lost - sums.exact,
                  .exact = sums.exact};
  counts.fused += {.swamped = sums.fused_lost,
                   .applied = sums.live - sums.fused_lost - sums.fused_exact,
                   .exact = sums.fused_exact};
}

}  // namespace

const std::byte* as_binary32(const TensorView& t, std::size_t first, std::size_t n,
                             std::span<float, kPairBlock> room) {
  if (is_there_already(t, n)) return t.data + 4 * first;
  return staged(t, first, n, room,
                [](std::uint64_t bits) { return if_binary32(std::bit_cast<double>(bits)); });
}

const std::byte* weights_as_binary32(const TensorView& t, Format f, std::size_t first,
                                     std::size_t n, std::span<float, kPairBlock> room) {
  if (is_there_already(t, n)) return t.data + 4 * first;
  return staged(t, first, n, room, [f](std::uint64_t bits) {
    return static_cast<float>(to_double(f, convert(f, kBinary64, bits).bits));
  });
}

const std::byte* apart_from(const std::byte* updates, const std::byte* weights, std::size_t n,
                            std::span<float, kPairBlock> room) {
  constexpr std::uintptr_t kHashed = 1 << 28, kNear = 512;  // bytes; kNear: lines in flight
  const auto address = [](const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p); };
  const bool is_near = (address(weights) - address(updates) + kNear) % kHashed <= 2 * kNear;
  if (!is_near || weights == std::as_bytes(room).data()) return weights;
  std::memcpy(room.data(), weights, 4 * whole_steps(n));
  return std::as_bytes(room).data();
}

PairScratch& pair_scratch() {
  thread_local const auto scratch = std::make_unique<PairScratch>();
  return *scratch;  // NOLINT(clang-analyzer-cplusplus.NewDelete): it lives as long as the thread
}

void fold_pairs(PairScratch& scratch, UpdateTable& table) {
  fold_sums(std::exchange(scratch.sums, {}), table.counts);
  if (!std::exchange(scratch.has_bins, false)) return;
  fold_row(scratch, 0, table);
  for (std::uint32_t row = kFirstWeight + kFieldBias; row < kEndField; ++row) {
    fold_row(scratch, row, table);
  }
  for (std::uint32_t bin = 0; bin < kErrorBins; ++bin) {
    std::uint64_t n = 0;
    for (auto& errors : scratch.errors) n += std::exchange(errors[bin], 0);
    if (n != 0) table.errors[static_cast<int>(bin) - kErrorBias] += n;
  }
}

}  // namespace halfscope
