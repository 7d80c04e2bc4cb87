// SPDX-License-Identifier: Apache-2.0
// Weight gradients that were recorded after the training loop had clipped them: what backward made
// was as large, or larger.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace halfscope::analyzers {

struct Analysis;

/// How a log shows it: run.json says so, or the norm over all its weight gradients (the square root
/// of their sum of squares, unscaled) is never above one value and has it at many steps, as
/// torch.nn.utils.clip_grad_norm_ leaves it.
struct Clipped {
  std::optional<double> norm;       ///< empty where run.json says it
  std::uint64_t steps = 0, of = 0;  ///< recorded steps that have this norm, of so many
};

/// By log; those alone that were clipped.
std::map<std::string, Clipped> clipped_logs(const Analysis& analysis);

}  // namespace halfscope::analyzers
