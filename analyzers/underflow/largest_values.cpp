// SPDX-License-Identifier: Apache-2.0
#include "analyzers/underflow/largest_values.hpp"

#include <algorithm>
#include <cmath>

#include "analyzers/frames/elements.hpp"
#include "analyzers/readers/samples.hpp"

namespace halfscope::analyzers::underflow {
namespace {

std::vector<std::uint64_t> place_of(std::uint64_t index, const std::vector<std::uint64_t>& shape) {
  std::vector<std::uint64_t> place(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; index /= shape[i]) place[i] = index % shape[i];
  return place;
}

/// Sorts the values and keeps the first `count`.
void keep_largest(std::vector<LargeValue>& values, std::size_t count) {
  std::ranges::stable_sort(values, std::ranges::greater{},
                           [](const LargeValue& each) { return std::abs(each.value); });
  values.resize(std::min(count, values.size()));
}

}  // namespace

std::vector<LargeValue> largest_values(const std::filesystem::path& log,
                                       const frames::Selection& selection, std::size_t count,
                                       frames::Notes& notes) {
  std::vector<LargeValue> largest;
  int rank = 0;
  const auto take = [&](const frames::WholeTensor& tensor) {
    constexpr std::size_t kPart = std::size_t{1} << 16;
    for (std::size_t first = 0; first < tensor.view.count; first += kPart) {
      const double least = largest.size() < count ? 0 : std::abs(largest.back().value);
      std::size_t index = first;
      for (const double x :
           frames::elements(tensor.view, first, std::min(kPart, tensor.view.count - first))) {
        const double value = x / tensor.scale;
        if (std::isfinite(x) && std::abs(value) > least) {
          largest.push_back({value, place_of(index, tensor.shape), rank});
        }
        ++index;
      }
      keep_largest(largest, count);
    }
  };
  frames::TensorsOfSteps tensors(selection, take);
  readers::for_each_whole_step(
      readers::Logs(selection).at(log), selection,
      [&](const frames::WholeStep& step) {
        rank = step.rank;
        tensors.take(step, step.tell);
      },
      notes);
  tensors.finish(log, notes);
  return largest;
}

}  // namespace halfscope::analyzers::underflow
