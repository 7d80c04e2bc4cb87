// SPDX-License-Identifier: Apache-2.0
// Detects weight gradients that were clipped before they were recorded. The gradients that the
// backward pass computed were as large, or larger.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "halfscope/log/run_log.hpp"

namespace halfscope::analyzers::underflow {

struct Analysis;
struct LogFindings;

/// Returns true if run.json says that gradients were clipped; or if the norm over all weight
/// gradients (the square root of their sum of squares, unscaled) reaches its maximum at many steps,
/// as after torch.nn.utils.clip_grad_norm_; or if their largest magnitude does so, as after
/// clip_grad_value_.
bool is_clipped(const LogFindings& log);

/// Returns true if the step's optimizer used gradients that the recorder could not read
/// (`gradients_missing`, docs/run-log.md).
bool misses_gradients(const log::StepScalars& step);

/// Returns how many steps of all logs have missing gradients.
std::size_t incomplete_steps(const Analysis& analysis);

}  // namespace halfscope::analyzers::underflow
