// SPDX-License-Identifier: Apache-2.0
// The host's part of counting on a device: what is refused, and tables from the results.
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
  if (tensor.data == nullptr && tensor.count != 0) {
    throw std::invalid_argument(std::string(who) + ": a null pointer to " +
                                std::to_string(tensor.count) + " elements");
  }
}

CutFractions cut_fractions() {
  const std::vector<std::uint64_t>& cuts = standard_cuts();
  CutFractions out{};
  bool fit = cuts.size() == std::size(out.at) && cuts[0] <= kCutUnit && cuts[0] > 0;
  for (std::size_t i = 0; fit && i < cuts.size(); ++i) {
    out.at[i] = static_cast<unsigned>((cuts[i] + kCutUnit - 1) / kCutUnit);
    fit = out.at[i] % 4096 <= 1;  // all fractions of an entry are on one side of the cut
  }
  if (!fit) {
    throw std::logic_error("binade table: the standard cuts do not fit the GPU's segments");
  }
  return out;
}

RowRange rows_of(Dtype dtype) {
  const Format f = format_of(dtype);
  const auto row = [](int exponent) {
    return static_cast<unsigned>(exponent + (exponent < -126 ? 149 : 150));
  };
  const unsigned first = row(f.min_quantum_exponent());
  return {first, row(f.emax) - first + 1};
}

void add_to_table(BinadeTable& table, const SliceResult& result, const RowCounts* rows) {
  TableFiller filler(table);
  const Extras& extras = result.extras;
  filler.add_specials({.zero = extras.zero,
                       .negative_zero = extras.negative_zero,
                       .nan = extras.nan,
                       .positive_infinity = extras.infinity - extras.negative_infinity,
                       .negative_infinity = extras.negative_infinity});
  if (extras.largest == 0) return;
  for (unsigned i = 0; i < result.row_count; ++i) {
    if (result.first_row + i == kZeroRow) continue;
    const int exponent = exponent_of_row(result.first_row + i);
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
}

}  // namespace halfscope::cuda
