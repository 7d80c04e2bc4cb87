// SPDX-License-Identifier: Apache-2.0
// The effect of rounding on a step's gradients. Each element is compared with the gradient that the
// reference backend computes from the same weights and batches.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "halfscope/log/run_log.hpp"

namespace halfscope::sim::training {

/// Errors of one tensor at one step, over all microbatches. Gradients are unscaled. Norms are
/// computed in binary64, over the elements that are finite in the run.
struct GradientError {
  log::Role role = log::Role::weight_grad;
  std::string name;
  std::uint64_t total = 0, nonfinite = 0;
  std::uint64_t true_nonzero = 0;  ///< among the elements that are finite in the run
  std::uint64_t lost = 0;          ///< the true value is not zero, the run's is
  /// Lost elements whose true value, multiplied by the gradient's scale, rounds to zero in the
  /// tensor's dtype. The others became zero in an earlier operation, or for another reason.
  std::uint64_t underflowed = 0;
  std::uint64_t spurious = 0;      ///< the true value is zero, the run's is not
  std::uint64_t sign_changed = 0;  ///< both are nonzero, with different signs
  double true_norm = 0, error_norm = 0;
  double lost_norm = 0, underflowed_norm = 0;  ///< norms of the true values of these elements
  double run_norm = 0, dot = 0;

  /// NaN for 0 / 0.
  double relative_error() const { return error_norm / true_norm; }
  double cosine() const { return dot / true_norm / run_norm; }
};

struct StepError {
  std::int64_t step = 0;
  double loss = 0, true_loss = 0;
  std::vector<GradientError> tensors;
};

inline constexpr const char* kTrueErrorFile = "true_error.jsonl";  ///< file name in a run's folder

/// Writes RUN/true_error.jsonl: one JSON object per step (docs/schema/true_error.schema.json).
class TrueErrorFile {
 public:
  /// Keeps the file's entries for steps before `from_step` and deletes the others.
  TrueErrorFile(const std::filesystem::path& run, std::int64_t from_step);
  void write(const StepError& error) const;

 private:
  std::filesystem::path path_;
};

/// Returns a run's true errors; empty if the file does not exist. Ignores an incomplete last line.
/// Throws log::BadInput.
std::vector<StepError> read_true_errors(const std::filesystem::path& run);

}  // namespace halfscope::sim::training
