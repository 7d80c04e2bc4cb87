// SPDX-License-Identifier: Apache-2.0
// Steps for which a log has some gradients but not others, so that the largest one is unknown.
#pragma once

#include <cstdint>
#include <set>

#include "halfscope/log/run_log.hpp"

namespace halfscope::analyzers::underflow {
struct LogFindings;
}

namespace halfscope::analyzers::recommend {

/// The unread steps of one log.
struct UnreadSteps {
  std::set<std::int64_t> steps;
  /// `lacking` of the `of` steps that have any gradient lack all gradients of `role`.
  std::size_t lacking = 0, of = 0;
  /// The role that most steps lack: activation_grad or weight_grad.
  log::Role role = log::Role::unknown;
  /// True if halfscope.torch.Recorder wrote the log, whose magnitudes_every can read the others.
  bool by_recorder = false;
};

/// Returns the steps at which a kind of gradients was not read that other steps of the log have, or
/// at which the recorder missed some (`gradients_missing`, docs/run-log.md). Ignores steps without
/// any.
UnreadSteps unread_steps(const underflow::LogFindings& log);

}  // namespace halfscope::analyzers::recommend
