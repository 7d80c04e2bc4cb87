// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/count/count.hpp"

#include <tbb/blocked_range.h>
#include <tbb/info.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_arena.h>

#include <array>
#include <cstring>
#include <utility>

#include "halfscope/table/count/element.hpp"
#include "halfscope/table/count/filler.hpp"
#include "halfscope/table/count/moment_sums.hpp"

namespace halfscope {
namespace {

struct DtypeRow {
  Dtype dtype;
  std::string_view name;  // as in safetensors files
  Format format;
};

constexpr std::array kDtypes = {
    DtypeRow{Dtype::f16, "F16", kBinary16},
    DtypeRow{Dtype::bf16, "BF16", kBfloat16},
    DtypeRow{Dtype::f32, "F32", kBinary32},
    DtypeRow{Dtype::f64, "F64", kBinary64},
    DtypeRow{Dtype::f8_e4m3, "F8_E4M3", kFloat8E4M3},
    DtypeRow{Dtype::f8_e5m2, "F8_E5M2", kFloat8E5M2},
};

/// For 8- and 16-bit elements: counts encodings, then unpacks each encoding once. The 32-bit counts
/// fit in the cache and cannot overflow within a chunk.
template <typename Bits>
BinadeTable count_encodings(const TensorView& t) {
  constexpr std::size_t kEncodings = std::size_t{1} << (8 * sizeof(Bits));
  constexpr std::size_t kChunk = std::size_t{1} << 31;
  constexpr std::size_t kAhead = 2048;  // bytes to prefetch: a quarter faster on wide data
  std::vector<std::uint32_t> counts(kEncodings);
  const Format f = format_of(t.dtype);
  BinadeTable table;
  for (std::size_t start = 0; start < t.count; start += kChunk) {
    const std::size_t end = std::min(start + kChunk, t.count);
    std::size_t i = start;
    constexpr std::size_t kPerWord = 8 / sizeof(Bits);
    for (; i + kPerWord <= end; i += kPerWord) {
      __builtin_prefetch(t.data + i * sizeof(Bits) + kAhead);
      std::uint64_t word;
      std::memcpy(&word, t.data + i * sizeof(Bits), sizeof word);
      for (std::size_t k = 0; k < kPerWord; ++k) {
        ++counts[static_cast<Bits>(word >> (8 * sizeof(Bits) * k))];
      }
    }
    for (; i < end; ++i) ++counts[load<Bits>(t.data, i)];
    for (std::size_t bits = 0; bits < kEncodings; ++bits) {
      if (counts[bits] != 0) add_encoding(table, f, bits, std::exchange(counts[bits], 0));
    }
  }
  return table;
}

// Below these sizes, the fixed cost of a dense table exceeds the cost of single additions.
constexpr std::size_t kSmallBlocks = 64, kSmall16 = 8192, kSmall8 = 64;

BinadeTable count_serial(const TensorView& t) {
  if (t.count >= kSmallBlocks && counts_by_blocks(t.dtype)) return count_by_blocks(t);
  switch (format_of(t.dtype).width) {
    case 8:
      if (t.count >= kSmall8) return count_encodings<std::uint8_t>(t);
      break;
    case 16:
      if (t.count >= kSmall16) return count_encodings<std::uint16_t>(t);
      break;
    default: break;
  }
  return count_binades_scalar(t, standard_cuts());
}

TensorView slice(const TensorView& t, std::size_t first, std::size_t end) {
  const std::size_t width = static_cast<std::size_t>(format_of(t.dtype).width / 8);
  return {t.dtype, t.data + first * width, end - first};
}

}  // namespace

Format format_of(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)].format; }

std::string_view name_of(Dtype dtype) { return kDtypes[static_cast<std::size_t>(dtype)].name; }

std::optional<Dtype> find_dtype(std::string_view name) {
  for (const DtypeRow& row : kDtypes) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

BinadeTable count_binades_scalar(const TensorView& tensor, std::vector<std::uint64_t> cuts) {
  BinadeTable table(std::move(cuts));
  const Format f = format_of(tensor.dtype);
  for (std::size_t i = 0; i < tensor.count; ++i) add_encoding(table, f, load(tensor, i), 1);
  return table;
}

std::pair<BinadeTable, Moments> measure(const TensorView& tensor) {
  if (tensor.count < kSmallBlocks || !counts_by_blocks(tensor.dtype)) {
    return {count_serial(tensor), moments(tensor)};
  }
  MomentSums sums;
  BinadeTable table = count_by_blocks(tensor, &sums);
  return {std::move(table), sums.value()};
}

BinadeTable count_binades(const TensorView& tensor, int threads) {
  constexpr std::size_t kGrain = std::size_t{1} << 20;  // elements; amortises a partial table
  if (threads == 1 || tensor.count < 2 * kGrain) return count_serial(tensor);
  using Range = tbb::blocked_range<std::size_t>;
  const auto count_range = [&](const Range& range, BinadeTable table) {
    table.merge(count_serial(slice(tensor, range.begin(), range.end())));
    return table;
  };
  const auto join = [](BinadeTable a, const BinadeTable& b) {
    a.merge(b);
    return a;
  };
  tbb::task_arena arena(threads == 0 ? tbb::task_arena::automatic : threads);
  return arena.execute([&] {
    return tbb::parallel_reduce(Range(0, tensor.count, kGrain), BinadeTable(), count_range, join);
  });
}

}  // namespace halfscope
