// SPDX-License-Identifier: Apache-2.0
// Why a run of steps overflows: by the loss scale, without one, or because of NaN in the model.
// The judgements are private to the overflow analyzer.
#pragma once

#include <optional>
#include <string>

#include "analyzers/overflow/overflow.hpp"
#include "analyzers/overflow/overflow_runs.hpp"

namespace halfscope::analyzers::overflow {

// Thresholds in binades; docs/numerics/statistics.md, "Infinities in gradients", has the reasons.
inline constexpr double kFar = 8;  ///< neighbours leave this much room: their kind did not overflow
inline constexpr double kOutOfReach = 16;  ///< room neighbours leave: no spike of gradients
inline constexpr double kLowered = 8;  ///< the scale came down by this much, and it did not help
/// Gradients this near to overflow may have been cast to FP16, whatever the record says.
inline constexpr double kNearLimit = 4;

/// An answer, and what it rests on.
struct Judgement {
  Cause cause = Cause::undetermined;
  std::string why;
  std::optional<int> safe_log2 = {};
  bool estimated = false;
  bool not_scale_related = false;  ///< OverflowEvent::not_scale_related
  bool maybe_rounded = false;      ///< OverflowEvent::maybe_rounded
};

/// Of recorded infinities and NaN.
Judgement judge_recorded(const LogView& view, const Run& run);

/// Of finite values that would overflow.
Judgement judge_what_if(const LogView& view, const Run& run);

/// The loss scale at which the first marked values were computed, where it acts on them and is
/// known; of a what-if, the scale that was asked about.
std::optional<double> scale_of(const LogView& view, const Run& run);

}  // namespace halfscope::analyzers::overflow
