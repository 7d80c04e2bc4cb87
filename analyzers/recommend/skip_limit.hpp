// SPDX-License-Identifier: Apache-2.0
// What a skipped step tells of how large gradients were, where no magnitude of it is recorded.
#pragma once

#include <optional>

#include "analyzers/recommend/recommend.hpp"

namespace halfscope::analyzers::recommend {

/// Of the logs of other tools: a step that was skipped at scale S had a gradient of 65520 / S or
/// more, unscaled. The one at the least scale; empty where there is none. Episodes are skipped in
/// which the scale came down by far in vain, or to about 1, while recorded gradients, at most
/// `largest` (unscaled), leave much room: then they were no values that a scale made too large
/// (docs/numerics/statistics.md, "Infinities in gradients").
std::optional<Limit> skip_limit(const underflow::Analysis& analysis, std::optional<double> largest);

/// The largest gradient that is recorded, unscaled; infinities apart.
std::optional<double> largest_finite(const underflow::Analysis& analysis);

}  // namespace halfscope::analyzers::recommend
