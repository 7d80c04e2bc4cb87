// SPDX-License-Identifier: Apache-2.0
// Judges why a run of steps overflows: because of the loss scale, without one, or because of NaN in
// the model. Private to the overflow analyzer.
#pragma once

#include <optional>
#include <string>

#include "analyzers/overflow/overflow.hpp"
#include "analyzers/overflow/overflow_runs.hpp"

namespace halfscope::analyzers::overflow {

// Thresholds in binades; docs/numerics/statistics.md, "Infinities in gradients", has the reasons.
inline constexpr double kFar = 8;  ///< headroom of nearby finite steps: overflow is unlikely
inline constexpr double kOutOfReach = 16;  ///< the same: no spike of gradients reaches so far
inline constexpr double kLowered = 8;      ///< fall of the scale that must have helped
/// Gradients this near to overflow may have been cast to FP16, whatever type is recorded.
inline constexpr double kNearLimit = 4;

/// A cause and the evidence for it.
struct Judgement {
  Cause cause = Cause::undetermined;
  std::string why;
  std::optional<int> safe_log2 = {};
  bool estimated = false;
  bool not_scale_related = false;  ///< OverflowEvent::not_scale_related
  bool maybe_rounded = false;      ///< OverflowEvent::maybe_rounded
};

/// Judges recorded infinities and NaN.
Judgement judge_recorded(const LogView& view, const Run& run);

/// Judges finite values that would overflow.
Judgement judge_what_if(const LogView& view, const Run& run);

/// Returns the loss scale at which the first marked values were computed; empty if none acts on
/// them or it is unknown. For a what-if, the requested scale.
std::optional<double> scale_of(const LogView& view, const Run& run);

}  // namespace halfscope::analyzers::overflow
