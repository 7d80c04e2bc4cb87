// SPDX-License-Identifier: Apache-2.0
// The parts of the overflow analyzer: runs of steps with infinities, NaN or overflow, the evidence
// about them from the rest of the log, and the judgement of their cause.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyzers/overflow/overflow.hpp"
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
  std::vector<std::int64_t> broken_forward;  ///< steps whose forward pass has infinities or NaN
  std::vector<std::int64_t> scalar_steps;    ///< ascending
  std::int64_t last_step = 0;                ///< last step with histograms or scalars
  bool at_run_scale = false;  ///< gradients are counted at each step's own loss scale

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

// Evidence: overflow_evidence.cpp.

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

// Judgements: overflow_cause.cpp, gradients in overflow_cause_gradients.cpp.

/// The first marked values of a run.
struct First {
  const underflow::TensorFindings* tensor = nullptr;  ///< null: only scalars show the values
  log::Role role = log::Role::unknown;
  std::int64_t at = 0;
  bool nan = false, inf = false;
  std::string held;            ///< "3 infinities and 1 NaN"
  std::optional<bool> narrow;  ///< computed in binary16's range or less; empty: unknown
};

/// Returns the judgement of values whose type is not recorded.
Judgement not_recorded_dtype(const First& first);

/// Judges gradients that became non-finite first; overflow_cause_gradients.cpp.
Judgement judge_gradient(const LogView& view, const Run& run, const First& first);

/// Returns the cause of a run's values, with `why` as a sentence.
Judgement judge(const LogView& view, const Run& run);

/// Returns the loss scale at which the first marked values were computed; empty if none acts on
/// them or it is unknown. For a what-if, the requested scale.
std::optional<double> scale_of(const LogView& view, const Run& run);

}  // namespace halfscope::analyzers::overflow
