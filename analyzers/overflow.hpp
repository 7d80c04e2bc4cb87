// SPDX-License-Identifier: Apache-2.0
// Overflow and its cause: headroom and its trend, the steps where infinity or NaN first appears and
// what led there, and whether a smaller loss scale would have helped.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/underflow.hpp"

namespace halfscope::analyzers {

/// Three different answers to an infinity or NaN.
enum class Cause : std::uint8_t {
  by_scale,      ///< overflow that a smaller loss scale avoids
  at_scale_1,    ///< overflow without any loss scale: no smaller scale helps, a wider format does
  nan_in_model,  ///< NaN or infinity that no rounding to the format made: no scale helps
  undetermined   ///< the log does not tell; `why` says what is missing
};
std::string_view name_of(Cause cause);  ///< "by_scale", ...

/// Room between a tensor's largest magnitude and overflow, in binades, at the scale it is seen at:
/// the analysis' loss scale for gradients, 1 for all else.
struct Headroom {
  std::size_t tensor = 0;     ///< index into Analysis::tensors
  double least = 0;           ///< over the steps; negative: it overflows
  std::int64_t least_at = 0;  ///< step
  double last = 0;            ///< at the last step
  /// Least-squares slope of log2 of the largest magnitude, binades per 1000 steps; empty below
  /// three steps. Positive: it grows toward overflow.
  std::optional<double> trend;
  std::optional<std::int64_t> overflow_expected_at;  ///< where the trend, if it holds, reaches it
};

/// What one tensor looked like at one step.
struct Glimpse {
  std::int64_t step = 0;
  std::optional<double> max_abs;  ///< finite, unscaled
  std::uint64_t nan = 0, inf = 0, overflow = 0;
};

/// A tensor on the way to the event, and its steps before and at it.
struct Lead {
  std::string name;
  std::string relation;  ///< "itself", "weight", "input", "output gradient", ...
  std::vector<Glimpse> glimpses;
};

/// A run of steps with infinities, NaN, or values that overflow in the target format.
struct OverflowEvent {
  std::string log;
  std::int64_t step = 0;       ///< first step
  std::int64_t last_step = 0;  ///< last consecutive recorded step
  std::string tensor;          ///< where it first appears in the order of computation; a role where
                               ///< only scalars tell
  std::uint64_t nan = 0, inf = 0, overflow = 0;  ///< at the first step, in that tensor
  Cause cause = Cause::undetermined;
  std::string why;  ///< one sentence with the numbers
  /// by_scale: the largest power of two that would have held at that step.
  std::optional<int> safe_log2;
  std::vector<Lead> leads;
};

struct OverflowFindings {
  std::vector<Headroom> headroom;     ///< least room first
  std::vector<OverflowEvent> events;  ///< by log and step
};

OverflowFindings find_overflow(const Analysis& analysis);

}  // namespace halfscope::analyzers
