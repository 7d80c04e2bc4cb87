// SPDX-License-Identifier: Apache-2.0
#include "analyzers/readers/common/printed_extremes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace halfscope::analyzers::readers::common {
namespace {

constexpr Contradiction kCrossed{"min is above max", "neither is used"};
constexpr Contradiction kOtherAmax{"the largest magnitude is not that of min and max",
                                   "it is assumed to lie anywhere between them"};
constexpr Contradiction kNorm{"the norm is below the largest magnitude",
                              "the latter is used only as an upper bound"};
// A printed infinity or NaN was there. It may be missing in another number, as in a maximum that is
// reduced over ranks.
constexpr Contradiction kNonfinite{"min, max, amax and norm disagree about infinities or NaN",
                                   "they are assumed to be there"};

bool is_nan(const Bounds& b) { return std::isnan(b.low) || std::isnan(b.high); }
bool is_finite(const Bounds& b) { return std::isfinite(b.low) && std::isfinite(b.high); }
bool are_apart(const Bounds& a, const Bounds& b) { return a.low > b.high || b.low > a.high; }

Magnitudes magnitudes_between(const Bounds& min, const Bounds& max) {
  Magnitudes found;
  found.largest = larger_magnitude(magnitude_bounds(min), magnitude_bounds(max));
  if (is_nan(found.largest)) return found;
  if (min.low > 0) found.smallest_nonzero = min.low;
  if (max.high < 0) found.smallest_nonzero = -max.high;
  return found;
}

/// Combines the magnitudes of min and max with the largest magnitude that is printed separately.
Magnitudes joined(const std::optional<Magnitudes>& between, const Bounds& amax,
                  std::vector<const Contradiction*>& wrong) {
  const Bounds largest{std::max(0.0, amax.low), amax.high};
  if (!between) return {is_nan(amax) ? amax : largest, {}};
  if (!is_finite(amax) || !is_finite(between->largest)) {
    const bool agree = is_nan(amax) == is_nan(between->largest) &&
                       (is_nan(amax) || !are_apart(largest, between->largest));
    if (!agree) wrong.push_back(&kNonfinite);
    return {larger_magnitude(between->largest, amax), {}};
  }
  if (!are_apart(largest, between->largest)) return {largest, between->smallest_nonzero};
  wrong.push_back(&kOtherAmax);
  return {
      {std::min(largest.low, between->largest.low), std::max(largest.high, between->largest.high)},
      {}};
}

/// Widens the known magnitudes if the norm contradicts them. An infinite norm never does, since the
/// norm of finite values overflows in narrow formats.
void doubt_by_norm(const Bounds& norm, double error, Magnitudes& known,
                   std::vector<const Contradiction*>& wrong) {
  const bool lost = !is_finite(known.largest) && is_finite(norm);
  if (lost || (is_nan(norm) && !is_nan(known.largest))) {
    wrong.push_back(&kNonfinite);
    if (is_nan(norm)) known = {norm, {}};
    return;
  }
  if (!is_finite(known.largest) || norm.high * (1 + error) >= known.largest.low) return;
  wrong.push_back(&kNorm);
  known = {{0, known.largest.high}, {}};
}

}  // namespace

Bounds larger_magnitude(const Bounds& a, const Bounds& b) {
  if (is_nan(a)) return a;
  if (is_nan(b)) return b;
  return {std::max(a.low, b.low), std::max(a.high, b.high)};
}

std::string text_of(const Bounds& printed) {
  const double middle = printed.low + (printed.high - printed.low) / 2;
  return fmt::format("{:.6g}", is_finite(printed) ? middle : printed.low);
}

std::string text_of(const PrintedExtremes& printed) {
  std::string text;
  const auto say = [&text](std::string_view name, const std::optional<Bounds>& value) {
    if (!value) return;
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, text_of(*value));
  };
  say("min", printed.min);
  say("max", printed.max);
  say("amax", printed.amax);
  say("norm", printed.norm);
  return text;
}

std::optional<Magnitudes> magnitudes_of(const PrintedExtremes& printed,
                                        std::vector<const Contradiction*>& wrong) {
  std::optional<Magnitudes> known;
  if (printed.min && printed.max) {
    if (printed.min->low > printed.max->high) {
      wrong.push_back(&kCrossed);
    } else {
      if (is_nan(*printed.min) != is_nan(*printed.max)) wrong.push_back(&kNonfinite);
      known = magnitudes_between(*printed.min, *printed.max);
    }
  }
  if (printed.amax) known = joined(known, *printed.amax, wrong);
  if (known && printed.norm) doubt_by_norm(*printed.norm, printed.norm_error, *known, wrong);
  return known;
}

}  // namespace halfscope::analyzers::readers::common
