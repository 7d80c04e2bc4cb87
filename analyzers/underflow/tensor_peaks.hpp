// SPDX-License-Identifier: Apache-2.0
// Consequences of a format for logs that have the largest magnitudes of tensors but no counts.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// Answer to a yes-or-no question, as far as bounds decide it.
enum class Answer : std::uint8_t { no, perhaps, yes };
std::string_view name_of(Answer answer);

/// One tensor of one log over the selected steps that have its magnitudes. Unscaled.
struct TensorPeaks {
  std::string log, name;
  log::Role role = log::Role::unknown;
  std::vector<frames::StepPeak> steps;     ///< ascending
  std::optional<double> max_abs;           ///< upper bound of finite values; empty if there is none
  std::optional<double> max_abs_at_least;  ///< lower bound of the largest value, if less
  std::int64_t max_step = 0;               ///< step of `max_abs`
  /// No nonzero value of any step is smaller; empty if that is unknown for some step.
  std::optional<double> min_abs_nonzero;
  std::vector<std::int64_t> nan_steps, inf_steps;
  double at_scale = 1.0;  ///< Analysis::loss_scale if a loss scale acts on it, else 1
  /// About finite values times at_scale in Analysis::target: some overflow; all nonzero values
  /// become zero at some step; some nonzero values become zero.
  Answer overflows = Answer::no, all_flushed = Answer::no, flushes = Answer::perhaps;
};

/// Returns the tensors' peaks by log, role, then first appearance.
std::vector<TensorPeaks> tensor_peaks(const Analysis& analysis);

}  // namespace halfscope::analyzers::underflow
