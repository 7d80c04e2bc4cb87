// SPDX-License-Identifier: Apache-2.0
#include "analyzers/frames/count_values.hpp"

#include <tbb/parallel_invoke.h>

#include <algorithm>
#include <iterator>

namespace halfscope::analyzers::frames {
namespace {

/// Elements per slice and progress report: short work, but enough for all threads.
constexpr std::size_t kSlice = std::size_t{1} << 24;
/// Elements per slice if moments are computed too: small enough to be still in the cache in the
/// second pass, and large enough to be worth a table of its own.
constexpr std::size_t kCachedSlice = std::size_t{1} << 20;
static_assert(kCachedSlice % MomentSums::kBlock == 0);

TensorView slice_of(const TensorView& view, std::size_t first, std::size_t most) {
  const TensorView before{view.dtype, nullptr, first};
  return {view.dtype, view.data + before.bytes(), std::min(most, view.count - first)};
}

/// Counts `view` in slices of at most `most` elements. The sum of their tables is the table of all.
template <typename Take>
BinadeTable sum_of_slices(const TensorView& view, std::size_t most, const Take& take) {
  BinadeTable sum = take(slice_of(view, 0, most));
  for (std::size_t first = most; first < view.count; first += most) {
    sum.merge(take(slice_of(view, first, most)));
  }
  return sum;
}

/// Counts `view`, and adds its moments to `moments` unless that is null.
template <typename Count>
BinadeTable table_of(const TensorView& view, MomentSums* moments, const Count& count) {
  if (moments == nullptr) return count(view);
  return sum_of_slices(view, kCachedSlice, [&](const TensorView& slice) {
    BinadeTable table = count(slice);
    moments->add(slice);
    return table;
  });
}

/// Counts `view`. Exact magnitude sums take most of the time, so they run parallel to the counting.
template <typename Count>
BinadeTable count_all(const TensorView& view, const Read& read, const Beside& beside,
                      const Count& count) {
  return sum_of_slices(view, kSlice, [&](const TensorView& slice) {
    BinadeTable table;
    const auto fill = [&] { table = table_of(slice, beside.moments, count); };
    if (beside.magnitudes == nullptr) {
      fill();
    } else {
      tbb::parallel_invoke(fill, [&] { beside.magnitudes->add(slice); });
    }
    read(slice.bytes());
    return table;
  });
}

}  // namespace

/// Uses the standard cuts if these are exact for the selection; else counts one element at a time.
BinadeTable count_values(const TensorView& view, const Selection& s, double scale, const Read& read,
                         const Beside& beside) {
  const std::vector<std::uint64_t>& standard = standard_cuts();
  const double loss_scale = s.at_run_scale ? scale : s.loss_scale;
  const std::vector<std::uint64_t> wanted = cuts_for(s.target, loss_scale, scale);
  if (std::ranges::includes(standard, wanted)) {
    return count_all(view, read, beside,
                     [](const TensorView& part) { return count_binades(part); });
  }
  std::vector<std::uint64_t> cuts;
  std::ranges::set_union(standard, wanted, std::back_inserter(cuts));
  return count_all(view, read, beside,
                   [&](const TensorView& part) { return count_binades_scalar(part, cuts); });
}

void add_moments(Frame& sum, const Frame& part) {
  if (!sum.moments || !part.moments) return sum.moments.reset();
  const auto finite = [](const Frame& frame) {
    return static_cast<double>(frame.table.zero().low + frame.table.finite_nonzero().low);
  };
  const double n = finite(sum), more = finite(part);
  if (more > 0) {
    sum.moments->mean = (sum.moments->mean * n + part.moments->mean * more) / (n + more);
  }
  sum.moments->sum_squares += part.moments->sum_squares;
}

}  // namespace halfscope::analyzers::frames
