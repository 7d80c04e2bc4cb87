// SPDX-License-Identifier: Apache-2.0
// What rounding did to a step's gradients: they are compared, one by one, with those that the
// reference backend computes at the same weights of the same batches.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "halfscope/log/run_log.hpp"

namespace halfscope::sim::training {

/// Of one tensor at one step; the microbatches of a step are one tensor. Gradients are unscaled.
/// Norms are over the elements that are finite in the run, in binary64.
struct GradientError {
  log::Role role = log::Role::weight_grad;
  std::string name;
  std::uint64_t total = 0, nonfinite = 0;
  std::uint64_t true_nonzero = 0;  ///< of the finite ones
  std::uint64_t lost = 0;          ///< not zero in truth, zero in the run
  /// Of those lost: the true value, times the scale that the gradient carries, rounds to zero in
  /// the tensor's own format. The others were lost upstream, or went another way.
  std::uint64_t underflowed = 0;
  std::uint64_t spurious = 0;      ///< zero in truth, not in the run
  std::uint64_t sign_changed = 0;  ///< not zero in either
  double true_norm = 0, error_norm = 0;
  double lost_norm = 0, underflowed_norm = 0;  ///< of the true values of those
  double run_norm = 0, dot = 0;

  /// NaN where it is 0 / 0.
  double relative_error() const { return error_norm / true_norm; }
  double cosine() const { return dot / true_norm / run_norm; }
};

struct StepError {
  std::int64_t step = 0;
  double loss = 0, true_loss = 0;
  std::vector<GradientError> tensors;
};

inline constexpr const char* kTrueErrorFile = "true_error.jsonl";  ///< in a run's folder

/// RUN/true_error.jsonl: one JSON object a step, docs/schema/true_error.schema.json.
class TrueErrorFile {
 public:
  /// Keeps what the file holds of steps before `from_step`, and drops the rest.
  TrueErrorFile(const std::filesystem::path& run, std::int64_t from_step);
  void write(const StepError& error) const;

 private:
  std::filesystem::path path_;
};

/// Empty where the run has none; a line that was cut off ends it. Throws log::BadInput.
std::vector<StepError> read_true_errors(const std::filesystem::path& run);

}  // namespace halfscope::sim::training
