// SPDX-License-Identifier: Apache-2.0
// The host's part of counting on a device: division into parts, and tables from the results.
#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

#include "halfscope/table/count/cuda_rows.hpp"
#include "halfscope/table/count/filler.hpp"

namespace halfscope::cuda {
namespace {

constexpr std::uint64_t kCutUnit = std::uint64_t{1} << (52 - 23);  // binary32's last fraction bit

Magnitude magnitude(unsigned bits) { return magnitude_of(unpack(kBinary32, bits)); }

}  // namespace

void require_device_tensor(const DeviceTensor& tensor, const char* who) {
  const Dtype d = tensor.dtype;
  if (d != Dtype::f16 && d != Dtype::bf16 && d != Dtype::f32) {
    throw std::invalid_argument(std::string(who) + ": elements of dtype " +
                                std::string(name_of(d)) + ", expected F16, BF16 or F32");
  }
  if (tensor.count < 0) {
    throw std::invalid_argument(std::string(who) + ": a count of " + std::to_string(tensor.count));
  }
}

void append_parts(const DeviceTensor& tensor, unsigned index, std::vector<Part>& parts) {
  const auto width = static_cast<std::int64_t>(format_of(tensor.dtype).width / 8);
  for (std::int64_t first = 0; first < tensor.count; first += kPartElements) {
    const auto count = static_cast<unsigned>(std::min(kPartElements, tensor.count - first));
    const auto* const data = static_cast<const std::byte*>(tensor.data) + width * first;
    parts.push_back({data, count, index, tensor.dtype});
  }
}

std::array<std::uint8_t, kSegmentEntries> segment_table() {
  const std::vector<std::uint64_t>& cuts = standard_cuts();
  const auto below = [&](std::uint64_t fraction) {  // cuts up to a binary32 fraction
    return std::upper_bound(cuts.begin(), cuts.end(), fraction * kCutUnit) - cuts.begin();
  };
  std::array<std::uint8_t, kSegmentEntries> table{};
  for (std::uint64_t entry = 0; entry < kSegmentEntries; ++entry) {
    const std::uint64_t start = (entry >> 1) << 12;
    const std::uint64_t first = start + (entry & 1);
    const std::uint64_t last = (entry & 1) == 0 ? start : start + 0xFFF;
    if (below(first) != below(last) || cuts.size() + 1 != kSegments) {
      throw std::logic_error("binade table: the standard cuts do not fit the GPU's segments");
    }
    table[entry] = static_cast<std::uint8_t>(below(first));
  }
  return table;
}

RowRange rows_of(Dtype dtype) {
  const Format f = format_of(dtype);
  const auto row = [](int exponent) {
    return static_cast<unsigned>(exponent + (exponent < -126 ? 149 : 150));
  };
  const unsigned first = row(f.min_quantum_exponent());
  return {first, row(f.emax) - first + 1};
}

BinadeTable table_of(Dtype dtype, const RowCounts* rows, const Extras& extras) {
  BinadeTable table;
  TableFiller filler(table);
  filler.add_specials({.zero = extras.zero,
                       .negative_zero = extras.negative_zero,
                       .nan = extras.nan,
                       .positive_infinity = extras.infinity - extras.negative_infinity,
                       .negative_infinity = extras.negative_infinity});
  if (extras.largest == 0) return table;
  const RowRange range = rows_of(dtype);
  for (unsigned i = 0; i < range.count; ++i) {
    if (range.first + i == kZeroRow) continue;
    const int exponent = exponent_of_row(range.first + i);
    for (std::size_t s = 0; s < kSegments; ++s) {
      filler.add_segment(exponent, s, rows[i].segments[s]);
    }
    filler.add_negative(exponent, rows[i].negative);
  }
  filler.extend(magnitude(~extras.smallest_inverted + 1), magnitude(extras.largest));
  const int significant = 24 - std::countr_zero(extras.fractions | 0x00800000u);
  const bool narrow = significant <= kNarrowBits;
  const int lowest = static_cast<int>(~extras.lowest_inverted) - kLowestBias;
  filler.widen(significant, narrow ? std::optional(lowest) : std::nullopt);
  return table;
}

}  // namespace halfscope::cuda
