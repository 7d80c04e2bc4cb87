// SPDX-License-Identifier: Apache-2.0
#include "analyzers/one_tensor.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analyzers/frames/elements.hpp"
#include "analyzers/readers/samples.hpp"
#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers {
namespace {

/// A value and its index in C order.
struct Found {
  double value;
  std::uint64_t index;
};

/// Returns true if `a` is listed before `b`.
bool is_larger(const Found& a, const Found& b) {
  const double x = std::abs(a.value), y = std::abs(b.value);
  return x != y ? x > y : a.index < b.index;
}

std::vector<std::uint64_t> place_of(std::uint64_t index, const std::vector<std::uint64_t>& shape) {
  std::vector<std::uint64_t> place(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; index /= shape[i]) place[i] = index % shape[i];
  return place;
}

/// Returns the largest finite nonzero values of a tensor, in order.
std::vector<Found> largest_of(const TensorView& view, std::size_t count) {
  constexpr std::size_t kPart = std::size_t{1} << 16;
  std::vector<Found> found;
  for (std::size_t first = 0; first < view.count; first += kPart) {
    const std::size_t n = std::min(kPart, view.count - first);
    const std::vector<double> values = frames::elements(view, first, n);
    for (std::size_t i = 0; i < n; ++i) {
      if (std::isfinite(values[i]) && values[i] != 0) found.push_back({values[i], first + i});
    }
    const std::size_t kept = std::min(count, found.size());
    std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(kept), found.end(),
                      is_larger);
    found.resize(kept);
  }
  return found;
}

std::vector<LargeValue> largest_values(const std::filesystem::path& log,
                                       const frames::Selection& selection, std::size_t count,
                                       frames::Notes& notes) {
  std::vector<LargeValue> all;
  int rank = 0;
  frames::TensorsOfSteps tensors(selection, [&](const frames::WholeTensor& tensor) {
    for (const Found& found : largest_of(tensor.view, count)) {
      all.push_back({found.value / tensor.scale, place_of(found.index, tensor.shape), rank});
    }
  });
  readers::for_each_whole_step(
      readers::Logs(selection).at(log), selection,
      [&](const frames::WholeStep& step) {
        rank = step.rank;
        tensors.take(step, step.tell);
      },
      notes);
  std::ranges::stable_sort(all, std::ranges::greater{},
                           [](const LargeValue& each) { return std::abs(each.value); });
  all.resize(std::min(all.size(), count));
  return all;
}

}  // namespace

OneTensor one_tensor(const std::filesystem::path& log, const underflow::Target& target,
                     const frames::Selection& selection, std::size_t count) {
  Findings found = analyze(std::vector{log}, target, selection, Passes{}, PhaseCallback());
  OneTensor one;
  one.tensor = found.analysis.tensors().front();
  one.target = found.analysis.target;
  for (const underflow::StepFindings& step : one.tensor.per_step) {
    const auto largest = underflow::finite_magnitude(step);
    if (largest) one.safe_log2 = largest->highest_safe_log2(target.format);
  }
  one.largest = largest_values(log, selection, count, found.analysis.notes);
  return one;
}

}  // namespace halfscope::analyzers
