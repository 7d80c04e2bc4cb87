// SPDX-License-Identifier: Apache-2.0
// What the rest of a log says about a run of steps with infinities: the scales it went through, the
// forward pass, and finite steps near it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/overflow/overflow_runs.hpp"

namespace halfscope::analyzers::overflow {

/// Whether tables of a role are recorded at a step.
bool has_role(const LogView& view, log::Role role, std::int64_t step);

/// Whether the forward pass of a step is known, by its loss or its activations.
bool forward_known(const LogView& view, std::int64_t step);
/// "the loss (2.31)", or what else of the forward pass is known.
std::string forward_text(const LogView& view, std::int64_t step);

/// Whether a gradient computed in FP16 holds an infinity at a step.
bool any_infinite_gradient(const LogView& view, std::int64_t step);

/// The loss scales of a run's steps for as long as the gradients are the first to fail: when the
/// forward pass fails too, that is a consequence.
struct ScaleSpan {
  double first = 1, least = 1, most = 1;
  std::int64_t least_at = 0;
};
/// Empty where the first step's scale is not known.
std::optional<ScaleSpan> scale_span(const LogView& view, const Run& run);

/// Whether a dynamic loss scale made the run: its steps were skipped at one scale, which the scale
/// had reached by growing.
bool is_growth_probe(const LogView& view, const Run& run);

/// Finite steps nearest to a run, up to three on either side.
struct Neighbours {
  std::vector<std::int64_t> steps;     ///< ascending
  std::optional<double> largest;       ///< unscaled magnitude over all their gradients
  bool held_at_smaller_scale = false;  ///< the step right after is finite at a smaller scale
};
Neighbours neighbours(const LogView& view, const Run& run);

/// The largest finite gradient, or loss held in FP16, over a run's steps, and the scale that holds
/// all of them.
struct LargestGradient {
  double unscaled = 0;
  std::int64_t step = 0;
  int safe_log2 = 0;  ///< largest power of two
};
LargestGradient largest_gradient(const LogView& view, const Run& run);

/// log2 of the largest power of two below x.
int below(double x);

}  // namespace halfscope::analyzers::overflow
