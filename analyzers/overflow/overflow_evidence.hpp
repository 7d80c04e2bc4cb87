// SPDX-License-Identifier: Apache-2.0
// Evidence from the rest of a log about a run of steps with infinities: its loss scales, the
// forward pass, and finite steps nearby.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/overflow/overflow_runs.hpp"

namespace halfscope::analyzers::overflow {

/// Returns true if the log has a role's histograms at a step.
bool has_role(const LogView& view, log::Role role, std::int64_t step);

/// Returns true if the loss or the activations of a step are recorded.
bool forward_known(const LogView& view, std::int64_t step);
/// Returns "the loss (2.31)", or other words for what is known of the forward pass.
std::string forward_text(const LogView& view, std::int64_t step);

/// Returns true if a gradient computed in FP16 has an infinity at a step.
bool any_infinite_gradient(const LogView& view, std::int64_t step);

/// The loss scales of a run's steps, up to the first step whose forward pass fails. Gradients that
/// fail after that are a consequence.
struct ScaleSpan {
  double first = 1, least = 1, most = 1;
  std::int64_t least_at = 0;
};
/// Returns the scales; empty if the first step's scale is unknown.
std::optional<ScaleSpan> scale_span(const LogView& view, const Run& run);

/// Returns true if a growing dynamic loss scale caused the run: all its steps were skipped at one
/// scale, which the scale had reached by growing.
bool is_growth_probe(const LogView& view, const Run& run);

/// The finite steps nearest to a run, up to three before and three after it.
struct Neighbours {
  std::vector<std::int64_t> steps;     ///< ascending
  std::optional<double> largest;       ///< unscaled magnitude over all their gradients
  bool held_at_smaller_scale = false;  ///< the step right after is finite at a smaller scale
};
Neighbours neighbours(const LogView& view, const Run& run);

/// The largest finite gradient, or loss held in FP16, over a run's steps, and the scale at which
/// none of them overflows.
struct LargestGradient {
  double unscaled = 0;
  std::int64_t step = 0;
  int safe_log2 = 0;  ///< log2 of the largest such power of two
};
LargestGradient largest_gradient(const LogView& view, const Run& run);

/// Returns log2 of the largest power of two below x.
int below(double x);

}  // namespace halfscope::analyzers::overflow
