// SPDX-License-Identifier: Apache-2.0
// Adds results from whole tensors to an analysis: exact sums of magnitudes and, for questions about
// formats, exact noise and MX formats.
#pragma once

#include <memory>
#include <optional>

#include "analyzers/formats/format_fit.hpp"
#include "analyzers/frames/whole_counts.hpp"
#include "analyzers/frames/whole_tensors.hpp"

namespace halfscope::analyzers::underflow {
struct LogFindings;
}

namespace halfscope::analyzers::formats {

/// Sets `sums` and `whole_steps` of every tensor while whole steps are read: log after log, step
/// after step. With options also `fits`, `narrowest`, `mx_fits`, `recipe_fits`, `lost` and
/// `lost_at_1`.
class WholePass {
 public:
  /// `options`: empty if only sums are needed.
  WholePass(underflow::Analysis& analysis, const frames::Selection& selection,
            const std::optional<FitOptions>& options);
  ~WholePass();
  WholePass(const WholePass&) = delete;
  WholePass& operator=(const WholePass&) = delete;

  void begin(underflow::LogFindings& log);
  /// Adds a tensor of the step that is already loaded. `tell`: the step's progress callback.
  void take(const frames::WholeStep& step, const log::NamedTensor& tensor,
            const frames::ProgressCallback& tell);
  /// Adds the step's remaining tensors. Loads one at a time.
  void take(const frames::WholeStep& step, const frames::ProgressCallback& tell);
  /// Adds sums that were counted earlier.
  void take(const frames::CountedSums& counted);
  /// Ends the log that begin() started.
  void finish_log();
  /// Call it after the last log.
  void finish();

 private:
  struct OfLog;

  underflow::Analysis& analysis_;
  const frames::Selection& selection_;
  std::optional<FitOptions> options_;
  std::unique_ptr<OfLog> log_;
  frames::Notes notes_;  ///< added to the analysis' notes at the end
};

}  // namespace halfscope::analyzers::formats
