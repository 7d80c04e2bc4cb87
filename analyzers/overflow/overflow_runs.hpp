// SPDX-License-Identifier: Apache-2.0
// Finds runs of consecutive recorded steps with infinities, NaN or overflow, and the tensor in
// which each first appears.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/underflow/computation_order.hpp"
#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers::overflow {

/// One log with the facts that the overflow analyzer needs.
struct LogView {
  LogView(const underflow::Analysis& analysis, const underflow::LogFindings& log);

  const underflow::Analysis& analysis;
  const underflow::LogFindings& log;
  underflow::LogScalars scalars;
  bool half_loss = false;   ///< the manifest says that the loss is held in FP16
  bool any_narrow = false;  ///< some tensor was computed in binary16's range or less
  underflow::ComputedFormats formats;
  /// Steps that have gradients, and no infinity or NaN in any recorded value.
  std::vector<std::int64_t> clean_steps;
  std::vector<std::int64_t> scalar_steps;  ///< ascending
  std::int64_t last_step = 0;              ///< last step with histograms or scalars
  bool at_run_scale = false;               ///< gradients are counted at each step's own loss scale

  /// Returns the loss scale for gradients of a step without histograms.
  double scale_seen(std::int64_t step) const;
  /// Returns a step's loss from its scalars if it is held in FP16, so that a loss scale acts on it.
  std::optional<double> counted_loss(const log::StepScalars& step) const {
    return half_loss ? step.loss : std::nullopt;
  }
  /// Returns true if tensors of this role had binary16's range or less; empty if there are none.
  std::optional<bool> narrow(log::Role role) const;
  const underflow::TensorFindings& tensor(std::size_t index) const { return log.tensors[index]; }
  /// Computed at the first call; not thread-safe.
  const underflow::ComputationOrder& order() const {
    return order_ ? *order_ : order_.emplace(log);
  }

 private:
  mutable std::optional<underflow::ComputationOrder> order_;
};

/// The kind of values to find: recorded infinities and NaN, or values that would overflow. The
/// latter have different cures in the forward pass and in gradients.
enum class Kind : std::uint8_t { recorded, what_if_forward, what_if_gradient };

/// The first tensor, in a step's order of computation, with values of the run's kind.
struct Mark {
  std::optional<std::size_t> tensor;  ///< empty: only a scalar of the step, of `role`, shows them
  log::Role role = log::Role::unknown;
  double scalar = 0;  ///< that scalar; 0 if only found_inf is set
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
