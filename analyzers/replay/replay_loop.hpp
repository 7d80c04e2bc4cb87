// SPDX-License-Identifier: Apache-2.0
// One policy stepped through a series; what is kept of each step is the caller's.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "analyzers/replay/step_series.hpp"
#include "halfscope/policy/policy.hpp"

namespace halfscope::analyzers::replay {

/// The smallest magnitude that rounds to infinity in binary16 (IEEE 754-2019, 4.3.1).
inline constexpr double kOverflow = 65520;

/// The largest magnitude that rounds to zero in binary16: half its smallest number, to even.
inline constexpr double kVanishes = 0x1p-25;

enum class OverflowVerdict : std::uint8_t { clean, overflow, unknown };

/// Whether magnitude * scale is at or above a limit. Exact: no rounded product decides.
inline bool reaches(double magnitude, double scale, double limit) {
  const double product = magnitude * scale;
  if (product != limit) return product > limit;
  return std::fma(magnitude, scale, -product) >= 0;
}

/// Whether magnitude * scale is at or below a limit. Exact.
inline bool stays_at(double magnitude, double scale, double limit) {
  const double product = magnitude * scale;
  if (product != limit) return product < limit;
  return std::fma(magnitude, scale, -product) <= 0;
}

/// Whether every gradient of a step is zero once it is rounded at a scale: the largest is, and is
/// known.
inline bool all_vanish(const Seen& seen, double scale) {
  if (!std::isfinite(seen.max_abs) || seen.partial || !(seen.max_abs > 0)) return false;
  return stays_at(seen.max_abs, scale, kVanishes);
}

/// Whether zeros that rounding made at `zero_to` may be gradients that overflow at a scale.
inline bool zeros_may_overflow(const Seen& seen, double scale) {
  constexpr double kRange = kOverflow / kVanishes;
  return seen.max_abs == 0 && scale > 0 && stays_at(seen.zero_to, kRange, scale);
}

/// The least that the largest magnitude can be that a scale multiplies; 0 where it is unknown.
inline double at_least(const Seen& seen) {
  const double least = std::isfinite(seen.max_abs) ? seen.max_abs : kOverflow / seen.overflow_from;
  return std::max(seen.loss, std::isfinite(least) ? least : 0);
}

/// Whether no scale helps a step: it has infinities or NaN that no rounding made.
inline bool in_model(const Seen& seen) {
  return !std::isfinite(seen.max_abs) && seen.overflow_from == 0;
}

/// Whether the gradients of an attempt, computed in binary16, overflow at a scale. Of gradients
/// that are partly recorded it is known only that they do, unless the run itself tested.
inline OverflowVerdict judge(const Seen& seen, double scale) {
  if (!(scale < INFINITY)) return OverflowVerdict::overflow;  // 0 times infinity is NaN
  if (reaches(seen.loss, scale, kOverflow)) return OverflowVerdict::overflow;
  if (std::isfinite(seen.max_abs)) {
    if (reaches(seen.max_abs, scale, kOverflow)) return OverflowVerdict::overflow;
    if (scale <= seen.clean_to) return OverflowVerdict::clean;
    const bool known = !seen.partial && !zeros_may_overflow(seen, scale);
    return known ? OverflowVerdict::clean : OverflowVerdict::unknown;
  }
  if (scale >= seen.overflow_from) return OverflowVerdict::overflow;
  return scale > 0 ? OverflowVerdict::unknown
                   : OverflowVerdict::clean;  // what rounding made is 0 at scale 0
}

/// What a policy that follows magnitudes is told of an attempt that is clean at a scale; empty
/// where it is unknown. Zeros that rounding made are zeros again at no larger scale.
inline std::optional<double> followed(const Seen& seen, double scale) {
  if (seen.weights ? seen.weights_partial : seen.partial) return std::nullopt;
  const double largest = seen.weights.value_or(seen.max_abs);
  return largest == 0 && scale > seen.zero_to ? std::nullopt : std::optional(largest);
}

/// What a policy made of one step.
struct Stepped {
  double scale = 0;       ///< at the first attempt
  double last_scale = 0;  ///< at the last one: the update is made at it
  std::uint32_t attempts = 0;
  bool overflow = false;      ///< some attempt's
  bool unknown = false;       ///< the last attempt's: no decision followed
  bool nonfinite = false;     ///< the last attempt's, surely
  bool model_nan = false;     ///< and no scale would have helped
  bool all_flushed = false;   ///< the last attempt's gradients, surely: the update has none
  policy::Decision decision;  ///< the last; of an unknown attempt none: apply

  bool applied() const {
    return decision.action == policy::Action::apply && decision.error.empty();
  }
  bool skipped() const { return decision.action == policy::Action::skip; }
  bool applied_nonfinite() const { return nonfinite && decision.action == policy::Action::apply; }
};

/// Is called with the index of each step and what the policy made of it; false: no more.
using SeeStep = std::function<bool(std::size_t, const Stepped&)>;

/// One step after the other until `see` says false or the policy ends training. The policy has been
/// started.
void step_through(policy::Policy& policy, const StepSeries& series, const SeeStep& see);

}  // namespace halfscope::analyzers::replay
