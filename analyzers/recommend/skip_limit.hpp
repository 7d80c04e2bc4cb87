// SPDX-License-Identifier: Apache-2.0
// A lower bound of the gradients of skipped steps, for logs that do not have their magnitudes.
#pragma once

#include <optional>

#include "analyzers/recommend/recommend.hpp"

namespace halfscope::analyzers::recommend {

/// Returns the limit from logs of other tools: a step that was skipped at scale S had an unscaled
/// gradient of at least 65520 / S. Uses the skip at the smallest scale; empty if there is none.
/// Ignores episodes in which lowering the scale by far, or to about 1, did not help, although
/// recorded gradients, at most `largest` (unscaled), are far below overflow: no scale made those
/// values too large (docs/numerics/statistics.md, "Infinities in gradients").
std::optional<Limit> skip_limit(const underflow::Analysis& analysis, std::optional<double> largest);

/// Returns the largest recorded finite gradient, unscaled; empty if there is none.
std::optional<double> largest_finite(const underflow::Analysis& analysis);

}  // namespace halfscope::analyzers::recommend
