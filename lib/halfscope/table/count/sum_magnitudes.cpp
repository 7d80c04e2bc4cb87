// SPDX-License-Identifier: Apache-2.0
// Adds tensors to magnitude sums in one pass.
#include <tbb/blocked_range.h>
#include <tbb/parallel_reduce.h>

#include <algorithm>
#include <bit>

#include "halfscope/device/arena.hpp"
#include "halfscope/table/count/element.hpp"
#include "halfscope/table/count/filler.hpp"
#include "halfscope/table/count/magnitude_sums.hpp"

namespace halfscope {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr int kFraction32 = kBinary32.precision - 1;
constexpr int kDropped = 52 - kFraction32;  // bits of a Magnitude's fraction that binary32 lacks
constexpr int kBinFraction = 11;            // bits of a fraction within a bin
constexpr std::size_t kBins = std::size_t{1} << (kFraction32 - kBinFraction);
constexpr std::size_t kLanes = 16;  // maximal number of segments of a row; a power of two

/// Returns the segment of a 23-bit fraction from its top bits and whether all bits below are zero.
/// The standard cuts are at a bin's first fraction or right after it.
struct SegmentOf {
  std::array<std::uint8_t, 2 * kBins> segments{};

  std::size_t operator()(std::uint32_t fraction) const {
    const std::uint32_t below = fraction & ((1u << kBinFraction) - 1);
    return segments[(fraction >> kBinFraction) * 2 + (below != 0 ? 1 : 0)];
  }
};

// Below these sizes, the fixed cost of dense cells exceeds the cost of single additions.
constexpr std::size_t kSmall32 = 512, kSmall16 = 8192, kSmall8 = 64;

/// For `count` elements. Empty if they are few or a cut is elsewhere.
std::optional<SegmentOf> segments_of(const std::vector<std::uint64_t>& cuts, std::size_t count) {
  if (count < kSmall32 || cuts.size() >= kLanes) return std::nullopt;
  SegmentOf table;
  for (const std::uint64_t cut : cuts) {
    const std::uint64_t first = (cut + (std::uint64_t{1} << kDropped) - 1) >> kDropped;
    const std::uint64_t within = first & ((1u << kBinFraction) - 1);
    if (within > 1) return std::nullopt;
    for (std::size_t at = (first >> kBinFraction) * 2 + within; at < 2 * kBins; ++at) {
      ++table.segments[at];
    }
  }
  return table;
}

/// Sums of 24-bit significands and of their squares; 64 bits suffice for kBlock of them.
struct Cell {
  std::uint64_t magnitudes = 0, squares = 0;
};
constexpr std::size_t kBlock = std::size_t{1} << 16;
constexpr int kLowest32 = -149;  // binade of the least subnormal
constexpr std::size_t kRows = 128 - kLowest32;

}  // namespace

/// Adds tensors to sums by methods that access the sums' representation.
class SumsFiller {
 public:
  explicit SumsFiller(MagnitudeSums& sums) : sums_(sums) {}

  void add_scalar(const TensorView& t) {
    const Format f = format_of(t.dtype);
    for (std::size_t i = 0; i < t.count; ++i) add_encoding(f, load(t, i), 1);
  }

  /// For 8- and 16-bit elements: counts encodings, then adds each encoding once.
  template <typename Bits>
  void add_by_encoding(const TensorView& t) {
    std::vector<std::uint64_t> counts(std::size_t{1} << (8 * sizeof(Bits)));
    for (std::size_t i = 0; i < t.count; ++i) ++counts[load<Bits>(t.data, i)];
    for (std::size_t bits = 0; bits < counts.size(); ++bits) {
      if (counts[bits] != 0) add_encoding(format_of(t.dtype), bits, counts[bits]);
    }
  }

  void add_binary32(const std::byte* data, std::size_t n, const SegmentOf& segment_of) {
    // Neighbours use different halves, because additions to the same cell wait for each other.
    std::vector<Cell> cells(2 * kRows * kLanes);
    for (std::size_t first = 0; first < n; first += kBlock) {
      const std::size_t end = std::min(first + kBlock, n);
      std::size_t i = first;
      for (; i + 2 <= end; i += 2) {
        add(load<std::uint32_t>(data, i), segment_of, cells.data());
        add(load<std::uint32_t>(data, i + 1), segment_of, cells.data() + kRows * kLanes);
      }
      if (i < end) add(load<std::uint32_t>(data, i), segment_of, cells.data());
      spill(cells);
    }
  }

 private:
  void add_encoding(Format f, std::uint64_t bits, std::uint64_t times) {
    const Unpacked x = unpack(f, bits);
    if (x.kind == Kind::finite) sums_.add(magnitude_of(x), times);
  }

  static void add(std::uint32_t bits, const SegmentOf& segment_of, Cell* cells) {
    constexpr std::uint32_t kHidden = 1u << kFraction32, kInfinite = 0x7F800000u;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
    std::uint32_t fraction = magnitude & (kHidden - 1);
    // A zero has the significand 0 and takes the common path, since zeros are frequent and a branch
    // for them would be mispredicted.
    std::uint32_t hidden = magnitude >= kHidden ? kHidden : 0;
    int row = static_cast<int>(magnitude >> kFraction32) - kBinary32.emax - kLowest32;
    const bool subnormal = magnitude - 1 < kHidden - 1;
    if (subnormal || magnitude >= kInfinite) {
      if (magnitude >= kInfinite) return;
      const int shift = std::countl_zero(fraction) - (31 - kFraction32);
      fraction = (fraction << shift) & (kHidden - 1);
      hidden = kHidden;
      row = 1 - kBinary32.emax - kLowest32 - shift;
    }
    Cell& cell = cells[static_cast<std::size_t>(row) * kLanes + segment_of(fraction)];
    const std::uint64_t significand = fraction | hidden;
    cell.magnitudes += significand;
    cell.squares += significand * significand;
  }

  void spill(std::vector<Cell>& cells) {
    for (std::size_t row = 0; row < kRows; ++row) {
      for (std::size_t segment = 0; segment < kLanes; ++segment) {
        Cell& a = cells[row * kLanes + segment];
        Cell& b = cells[(kRows + row) * kLanes + segment];
        if ((a.magnitudes | b.magnitudes) == 0) continue;
        MagnitudeSums::Part& sums = sums_.part_at(static_cast<int>(row) + kLowest32, segment);
        const Wide magnitudes = (Wide{a.magnitudes} + b.magnitudes) << kDropped;
        const Wide squares = (Wide{a.squares} + b.squares) << (2 * kDropped);
        carry_into(sums.magnitudes, magnitudes);
        carry_into(sums.squares, squares);
        a = b = {};
      }
    }
  }

  template <std::size_t N>
  static void carry_into(std::array<std::uint64_t, N>& to, Wide addend) {
    Wide carry = 0;
    for (std::size_t i = 0; i < N; ++i) {
      carry += Wide{to[i]} + static_cast<std::uint64_t>(addend);
      to[i] = static_cast<std::uint64_t>(carry);
      carry >>= 64;
      addend >>= 64;
    }
  }

  MagnitudeSums& sums_;
};

namespace {

void add_serial(MagnitudeSums& sums, const TensorView& t, const std::optional<SegmentOf>& table) {
  SumsFiller filler(sums);
  switch (format_of(t.dtype).width) {
    case 8:
      if (t.count >= kSmall8) return filler.add_by_encoding<std::uint8_t>(t);
      break;
    case 16:
      if (t.count >= kSmall16) return filler.add_by_encoding<std::uint16_t>(t);
      break;
    case 32:
      if (table) return filler.add_binary32(t.data, t.count, *table);
      break;
    default: break;
  }
  filler.add_scalar(t);
}

}  // namespace

void MagnitudeSums::add(const TensorView& tensor, int threads) {
  constexpr std::size_t kGrain = std::size_t{1} << 20;  // elements; amortises a partial sum
  const std::optional<SegmentOf> table = segments_of(cuts(), tensor.count);
  if (threads == 1 || tensor.count < 2 * kGrain) return add_serial(*this, tensor, table);
  const auto width = static_cast<std::size_t>(format_of(tensor.dtype).width / 8);
  using Range = tbb::blocked_range<std::size_t>;
  const auto add_range = [&](const Range& range, MagnitudeSums sums) {
    add_serial(sums, {tensor.dtype, tensor.data + range.begin() * width, range.size()}, table);
    return sums;
  };
  const auto join = [](MagnitudeSums a, const MagnitudeSums& b) {
    a.merge(b);
    return a;
  };
  MagnitudeSums empty;
  empty.cuts_ = cuts_;
  in_arena(threads, [&] {
    merge(tbb::parallel_reduce(Range(0, tensor.count, kGrain), empty, add_range, join));
  });
}

}  // namespace halfscope
