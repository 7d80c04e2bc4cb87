// SPDX-License-Identifier: Apache-2.0
#include "analyzers/frames/count_values.hpp"

#include <algorithm>
#include <iterator>

namespace halfscope::analyzers::frames {
namespace {

/// A moment's work, and enough for all threads.
constexpr std::size_t kSlice = std::size_t{1} << 24;

/// Tables add, so that a slice at a time gives the same.
template <typename Count>
BinadeTable sum_of_slices(const TensorView& view, const Read& read, const Count& count) {
  BinadeTable sum = count(TensorView{view.dtype, view.data, std::min(kSlice, view.count)});
  read(TensorView{view.dtype, nullptr, std::min(kSlice, view.count)}.bytes());
  for (std::size_t first = kSlice; first < view.count; first += kSlice) {
    const TensorView before{view.dtype, nullptr, first};
    const TensorView slice{view.dtype, view.data + before.bytes(),
                           std::min(kSlice, view.count - first)};
    sum.merge(count(slice));
    read(slice.bytes());
  }
  return sum;
}

}  // namespace

/// With standard cuts where these are exact, and one element at a time where they are not.
BinadeTable count_values(const TensorView& view, const Selection& s, double scale,
                         const Read& read) {
  const std::vector<std::uint64_t>& standard = standard_cuts();
  const double loss_scale = s.at_run_scale ? scale : s.loss_scale;
  const std::vector<std::uint64_t> wanted = cuts_for(s.target, loss_scale, scale);
  if (std::ranges::includes(standard, wanted)) {
    return sum_of_slices(view, read, [](const TensorView& part) { return count_binades(part); });
  }
  std::vector<std::uint64_t> cuts;
  std::ranges::set_union(standard, wanted, std::back_inserter(cuts));
  return sum_of_slices(view, read,
                       [&](const TensorView& part) { return count_binades_scalar(part, cuts); });
}

}  // namespace halfscope::analyzers::frames
