// SPDX-License-Identifier: Apache-2.0
// Steps of which a log has some gradients and lacks others, so that the largest one is unknown.
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
  /// Steps that lack all gradients of `role`, of those that have any gradient. 0: every step has
  /// what the others have.
  std::size_t lacking = 0, of = 0;
  /// Whose gradients the most steps lack: activation_grad or weight_grad.
  log::Role role = log::Role::unknown;
  /// Whether halfscope.torch.Recorder wrote the log: its magnitudes_every reads them.
  bool by_recorder = false;
};

/// Returns the steps at which a kind of gradients was not read that other steps of the log have, or
/// at which the recorder missed some (`gradients_missing`, docs/run-log.md). A step without any
/// gradient is no step here.
UnreadSteps unread_steps(const underflow::LogFindings& log);

}  // namespace halfscope::analyzers::recommend
