// SPDX-License-Identifier: Apache-2.0
// Runs of consecutive recorded steps that hold infinities, NaN or overflow, and where each first
// appears.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/underflow/computation_order.hpp"
#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers::overflow {

/// One log as the overflow analyzer looks at it.
struct LogView {
  LogView(const underflow::Analysis& analysis, const underflow::LogFindings& log);

  const underflow::Analysis& analysis;
  const underflow::LogFindings& log;
  underflow::LogScalars scalars;
  bool half_loss = false;   ///< the manifest says that the loss is held in FP16
  bool any_narrow = false;  ///< some tensor was computed in a format of binary16's range or less
  underflow::ComputedFormats formats;
  /// Steps with gradients, all of them finite, and everything else that is recorded of the step.
  std::vector<std::int64_t> clean_steps;
  std::vector<std::int64_t> scalar_steps;  ///< ascending
  std::int64_t last_step = 0;              ///< with tables or scalars
  bool at_run_scale = false;               ///< gradients are seen at each step's own loss scale

  /// The loss scale that gradients of a step without tables are seen at.
  double scale_seen(std::int64_t step) const;
  /// The loss of a step by its scalars, where a loss scale acts on it: held in FP16.
  std::optional<double> counted_loss(const log::StepScalars& step) const {
    return half_loss ? step.loss : std::nullopt;
  }
  /// Whether what has this role was computed in such a format; empty where the log does not tell.
  std::optional<bool> narrow(log::Role role) const;
  const underflow::TensorFindings& tensor(std::size_t index) const { return log.tensors[index]; }
  /// Made when it is asked for first: for one thread.
  const underflow::ComputationOrder& order() const {
    return order_ ? *order_ : order_.emplace(log);
  }

 private:
  mutable std::optional<underflow::ComputationOrder> order_;
};

/// What is looked for. Recorded infinities and NaN are one matter; what would overflow is another,
/// and the two kinds of it have different cures.
enum class Kind : std::uint8_t { recorded, what_if_forward, what_if_gradient };

/// Where something first appears in a step's order of computation.
struct Mark {
  std::optional<std::size_t> tensor;  ///< empty: only the step's scalars show it, of `role`
  log::Role role = log::Role::unknown;
  double scalar = 0;  ///< what they show; 0 where they say found_inf alone
};

/// Consecutive recorded steps with a mark, ascending.
struct Run {
  Kind kind = Kind::recorded;
  std::vector<std::pair<std::int64_t, Mark>> steps;

  std::int64_t first_step() const { return steps.front().first; }
  std::int64_t last_step() const { return steps.back().first; }
  const Mark& first() const { return steps.front().second; }
};

std::vector<Run> find_runs(const LogView& view, Kind kind);

}  // namespace halfscope::analyzers::overflow
