// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/update_pass.hpp"

#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "halfscope/array/array.hpp"
#include "halfscope/number/convert.hpp"
#include "halfscope/table/update_source.hpp"

namespace halfscope {
namespace {

/// binary16 and bfloat16 are binary32 numbers.
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

/// One row of bins into the table, and clears it.
void fold_row(PairScratch& scratch, std::uint32_t row, UpdateTable& table) {
  const bool zero_weight = row == 0;
  const int weight = static_cast<int>(row) - kWeightBias;
  const int weight_key = zero_weight ? UpdateTable::kZeroWeight : weight;
  for (std::uint32_t bin = 0; bin < kUpdateRow; bin += 2) {
    UpdateCell cell;
    for (auto& cells : scratch.cells) {
      const std::uint64_t kept = std::exchange(cells[row * kUpdateRow + bin], 0);
      const std::uint64_t lost = std::exchange(cells[row * kUpdateRow + bin + 1], 0);
      cell += {kept + lost, lost};
    }
    if (cell.count == 0 || bin < 4) continue;  // column 0: pairs that do not count
    const int update = static_cast<int>(bin / 4) - kUpdateBias;
    table.cells[{weight_key, update}] += cell;
    if (!zero_weight) table.ratios[update - weight - (bin % 4 == 2 ? 1 : 0)] += cell;
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

PairScratch& pair_scratch() {
  thread_local const auto scratch = std::make_unique<PairScratch>();
  return *scratch;
}

void fold_pairs(PairScratch& scratch, UpdateTable& table) {
  fold_sums(std::exchange(scratch.sums, {}), table.counts);
  for (std::uint32_t row = scratch.first_row; row < scratch.end_row; ++row) {
    fold_row(scratch, row, table);
  }
  if (scratch.first_row < scratch.end_row) {
    for (std::uint32_t bin = 0; bin < kErrorBins; ++bin) {
      std::uint64_t n = 0;
      for (auto& errors : scratch.errors) n += std::exchange(errors[bin], 0);
      if (n != 0) table.errors[static_cast<int>(bin) - kErrorBias] += n;
    }
  }
  scratch.first_row = kUpdateRows;
  scratch.end_row = 0;
}

}  // namespace halfscope
