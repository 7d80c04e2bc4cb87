// SPDX-License-Identifier: Apache-2.0
// The words for modes: TestFloat's for directions, the rule's own for NaN.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "halfscope/number/modes.hpp"

namespace halfscope {

/// The first is the default. Stochastic rounding is not among them: it needs a source of bits.
inline constexpr std::array<std::pair<std::string_view, Rounding>, 6> kRoundingNames = {
    {{"near_even", Rounding::ties_to_even},
     {"near_maxMag", Rounding::ties_to_away},
     {"minMag", Rounding::toward_zero},
     {"min", Rounding::downward},
     {"max", Rounding::upward},
     {"odd", Rounding::to_odd}}};
inline constexpr std::array<std::pair<std::string_view, NanPolicy>, 3> kNanNames = {
    {{"x86", NanPolicy::x86}, {"canonical", NanPolicy::canonical}, {"cuda", NanPolicy::cuda}}};

}  // namespace halfscope
