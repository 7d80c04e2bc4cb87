// SPDX-License-Identifier: Apache-2.0
// Names of the modes: TestFloat's for rounding directions, the enumerators' own for NaN policies.
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "halfscope/number/modes.hpp"

namespace halfscope {

/// The first is the default. Stochastic rounding is absent because it needs random bits.
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
