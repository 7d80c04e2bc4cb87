// SPDX-License-Identifier: Apache-2.0
// Runs one policy through a series: what a scale makes of a step, and the traces of policies with
// one scale per tensor or layer.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "analyzers/replay/replay.hpp"
#include "halfscope/policy/als.hpp"
#include "halfscope/policy/transformer_engine.hpp"

namespace halfscope::analyzers::replay {

/// The smallest magnitude that rounds to infinity in binary16 (IEEE 754-2019, 4.3.1).
inline constexpr double kOverflow = 65520;

/// The largest magnitude that rounds to zero in binary16: half its smallest number (ties to even).
inline constexpr double kVanishes = 0x1p-25;

enum class OverflowVerdict : std::uint8_t { clean, overflow, unknown };

/// Returns true if magnitude * scale >= limit. Exact: the rounded product does not decide.
inline bool reaches(double magnitude, double scale, double limit) {
  const double product = magnitude * scale;
  if (product != limit) return product > limit;
  return std::fma(magnitude, scale, -product) >= 0;
}

/// Returns true if magnitude * scale <= limit. Exact.
inline bool stays_at(double magnitude, double scale, double limit) {
  const double product = magnitude * scale;
  if (product != limit) return product < limit;
  return std::fma(magnitude, scale, -product) <= 0;
}

/// Returns true if every gradient of a step surely rounds to zero at a scale: the largest one does.
inline bool all_vanish(const AttemptMagnitudes& seen, double scale) {
  if (!std::isfinite(seen.max_abs) || seen.partial || !(seen.max_abs > 0)) return false;
  return stays_at(seen.max_abs, scale, kVanishes);
}

/// Returns true if gradients that rounding made zero at scale `zero_to` may overflow at `scale`.
inline bool zeros_may_overflow(const AttemptMagnitudes& seen, double scale) {
  constexpr double kRange = kOverflow / kVanishes;
  return seen.max_abs == 0 && scale > 0 && stays_at(seen.zero_to, kRange, scale);
}

/// Returns a lower bound of the largest magnitude that the scale multiplies; 0 if unknown.
inline double at_least(const AttemptMagnitudes& seen) {
  const double least = std::isfinite(seen.max_abs) ? seen.max_abs : kOverflow / seen.overflow_from;
  return std::max(seen.loss, std::isfinite(least) ? least : 0);
}

/// Returns true if no scale helps a step: it has infinities or NaN that no rounding made.
inline bool in_model(const AttemptMagnitudes& seen) {
  return !std::isfinite(seen.max_abs) && seen.overflow_from == 0;
}

/// Returns the verdict on the gradients of an attempt, computed in binary16 at a scale. If they are
/// partly recorded, only an overflow is certain, unless the run tested them
/// (AttemptMagnitudes::clean_to).
inline OverflowVerdict judge(const AttemptMagnitudes& seen, double scale) {
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
                   : OverflowVerdict::clean;  // infinities from rounding are 0 at scale 0
}

/// Returns the magnitude of an attempt, clean at a scale, for a policy that follows magnitudes;
/// empty if unknown. A magnitude that rounding made zero is zero again at smaller scales.
inline std::optional<double> followed(const AttemptMagnitudes& seen, double scale) {
  if (seen.weights ? seen.weights_partial : seen.partial) return std::nullopt;
  const double largest = seen.weights.value_or(seen.max_abs);
  return largest == 0 && scale > seen.zero_to ? std::nullopt : std::optional(largest);
}

/// The result of one step with a policy.
struct Stepped {
  double scale = 0;       ///< at the first attempt
  double last_scale = 0;  ///< at the last attempt, whose gradients make the update
  std::uint32_t attempts = 0;
  bool overflow = false;      ///< some attempt overflowed
  bool unknown = false;       ///< the last attempt's outcome is unknown; no decision followed
  bool nonfinite = false;     ///< the last attempt surely overflowed
  bool model_nan = false;     ///< no scale would have helped the last attempt
  bool all_flushed = false;   ///< the last attempt surely flushes all gradients
  policy::Decision decision;  ///< the last decision; `apply` if the last attempt is unknown

  bool applied() const {
    return decision.action == policy::Action::apply && decision.error.empty();
  }
  bool skipped() const { return decision.action == policy::Action::skip; }
  bool applied_nonfinite() const { return nonfinite && decision.action == policy::Action::apply; }
};

/// Called with the index of each step and its result; returns false to stop.
using SeeStep = std::function<bool(std::size_t, const Stepped&)>;

/// Replays the steps until `see` returns false or training ends. Call policy::start() first.
void step_through(policy::Policy& policy, const StepSeries& series, const SeeStep& see);

/// Replays FP8 delayed scaling, with one policy object per tensor. `trace` has its policy and name.
/// Its `overflow` has the steps with a value beyond the format's range, which saturates.
void replay_tensors(const policy::TeDelayed& policy, const StepSeries& series, Trace& trace);

/// Replays adaptive loss scaling, with one policy object per layer, in backward order. For steps
/// without histograms uses a layer's last recorded step before them. The trace's `overflow` has the
/// steps at which a gradient reaches a layer at a scale that is too large for it.
void replay_layers(const policy::Als& policy, const StepSeries& series, Trace& trace);

/// Appends (index, scale) if the scale differs from the last one.
void add_scale(ScaleRuns& runs, std::size_t index, double scale);

/// Returns the indices of the steps that have histograms, ascending, and their flushed profiles.
std::vector<std::pair<std::size_t, const FlushedProfile*>> flushed_by_index(
    const StepSeries& series);

/// Sets the flushed shares of a trace from its scales.
void add_flushed(Trace& trace, const StepSeries& series);

}  // namespace halfscope::analyzers::replay
