// SPDX-License-Identifier: Apache-2.0
#include "analyzers/frames/count_values.hpp"

#include <algorithm>
#include <iterator>

namespace halfscope::analyzers::frames {
namespace {

/// A moment's work, and enough for all threads.
constexpr std::size_t kSlice = std::size_t{1} << 24;
/// What caches may still hold when it is looked at again, and enough for a table of its own.
constexpr std::size_t kCachedSlice = std::size_t{1} << 20;
static_assert(kCachedSlice % MomentSums::kBlock == 0);

TensorView slice_of(const TensorView& view, std::size_t first, std::size_t most) {
  const TensorView before{view.dtype, nullptr, first};
  return {view.dtype, view.data + before.bytes(), std::min(most, view.count - first)};
}

/// Tables add, so that a slice at a time gives the same.
template <typename Count>
BinadeTable sum_of_slices(const TensorView& view, const Read& read, const Beside& beside,
                          const Count& count) {
  const bool alone = beside.moments == nullptr && beside.magnitudes == nullptr;
  const std::size_t most = alone ? kSlice : kCachedSlice;
  const auto take = [&](std::size_t first) {
    const TensorView slice = slice_of(view, first, most);
    BinadeTable table = count(slice);
    if (beside.moments != nullptr) beside.moments->add(slice);
    if (beside.magnitudes != nullptr) beside.magnitudes->add(slice);
    read(slice.bytes());
    return table;
  };
  BinadeTable sum = take(0);
  for (std::size_t first = most; first < view.count; first += most) sum.merge(take(first));
  return sum;
}

}  // namespace

/// With standard cuts where these are exact, and one element at a time where they are not.
BinadeTable count_values(const TensorView& view, const Selection& s, double scale, const Read& read,
                         const Beside& beside) {
  const std::vector<std::uint64_t>& standard = standard_cuts();
  const double loss_scale = s.at_run_scale ? scale : s.loss_scale;
  const std::vector<std::uint64_t> wanted = cuts_for(s.target, loss_scale, scale);
  if (std::ranges::includes(standard, wanted)) {
    return sum_of_slices(view, read, beside,
                         [](const TensorView& part) { return count_binades(part); });
  }
  std::vector<std::uint64_t> cuts;
  std::ranges::set_union(standard, wanted, std::back_inserter(cuts));
  return sum_of_slices(view, read, beside,
                       [&](const TensorView& part) { return count_binades_scalar(part, cuts); });
}

}  // namespace halfscope::analyzers::frames
