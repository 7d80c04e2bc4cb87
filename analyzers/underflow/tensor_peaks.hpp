// SPDX-License-Identifier: Apache-2.0
// Of logs that have the largest magnitudes of tensors and no counts: what follows for a format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// Whether something is so, as far as bounds tell.
enum class Answer : std::uint8_t { no, perhaps, yes };
std::string_view name_of(Answer answer);

/// One tensor of one log over the selected steps that have magnitudes of it. Unscaled.
struct TensorPeaks {
  std::string log, name;
  log::Role role = log::Role::unknown;
  std::vector<frames::StepPeak> steps;  ///< ascending
  std::optional<double> max_abs;        ///< finite values, the most it can be; empty where none is
  std::optional<double> max_abs_at_least;  ///< where that is less
  std::int64_t max_step = 0;               ///< the step `max_abs` is of
  /// No nonzero value of any step is smaller; empty where that is not known of every step.
  std::optional<double> min_abs_nonzero;
  std::vector<std::int64_t> nan_steps, inf_steps;
  double at_scale = 1.0;  ///< Analysis::loss_scale where a loss scale acts on it
  /// Of finite values times at_scale in Analysis::target: whether some overflow; whether all
  /// nonzero ones become zero at some step; whether some do.
  Answer overflows = Answer::no, all_flushed = Answer::no, flushes = Answer::perhaps;
};

/// By log, role, then first appearance.
std::vector<TensorPeaks> tensor_peaks(const Analysis& analysis);

}  // namespace halfscope::analyzers::underflow
