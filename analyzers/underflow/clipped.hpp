// SPDX-License-Identifier: Apache-2.0
// Weight gradients that were recorded after the training loop had clipped them: what backward made
// was as large, or larger.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "halfscope/log/run_log.hpp"

namespace halfscope::analyzers::underflow {

struct Analysis;
struct LogFindings;

/// Whether the log shows it: run.json says so; or the norm over all its weight gradients (the
/// square root of their sum of squares, unscaled) is never above one value and has it at many
/// steps, as torch.nn.utils.clip_grad_norm_ leaves it; or their largest magnitude is and does, as
/// clip_grad_value_ leaves it.
bool is_clipped(const LogFindings& log);

/// Whether the step's optimizer used gradients that the recorder could not read
/// (`gradients_missing`, docs/run-log.md).
bool misses_gradients(const log::StepScalars& step);

/// Such steps, over all logs.
std::size_t incomplete_steps(const Analysis& analysis);

}  // namespace halfscope::analyzers::underflow
