// SPDX-License-Identifier: Apache-2.0
#include "halfscope/table/cuts.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>

#include "halfscope/table/boundary.hpp"

namespace halfscope {

using List = std::vector<std::uint64_t>;

Cuts::Cuts() {
  static const auto standard = std::make_shared<const List>(standard_cuts());
  list_ = standard;
}

Cuts::Cuts(List cuts) : Cuts() {
  if (cuts == *list_) return;
  const bool ascending = std::ranges::adjacent_find(cuts, std::greater_equal<>()) == cuts.end();
  if (!ascending || (!cuts.empty() && (cuts.front() == 0 || cuts.back() >= kFractionUnit))) {
    throw std::invalid_argument("cuts must ascend strictly within (0, 2^52)");
  }
  list_ = std::make_shared<const List>(std::move(cuts));
}

std::size_t Cuts::segment_of(std::uint64_t fraction) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(*list_, fraction) - list_->begin());
}

std::uint64_t Cuts::first_of(std::size_t segment) const {
  return segment == 0 ? 0 : (*list_)[segment - 1];
}

std::uint64_t Cuts::last_of(std::size_t segment) const {
  return (segment < list_->size() ? (*list_)[segment] : kFractionUnit) - 1;
}

}  // namespace halfscope
