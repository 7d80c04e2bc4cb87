// SPDX-License-Identifier: Apache-2.0
// What whole tensors add to an analysis: exact sums of magnitudes; where every format is asked
// about, exact noise and MX formats.
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

/// Sets `sums` and `whole_steps` of every tensor, while whole steps are read: log after log, step
/// after step. With options also `fits`, `narrowest`, `block_fits`, `lost` and `lost_at_1`.
class WholePass {
 public:
  /// options: empty where sums alone are asked for.
  WholePass(underflow::Analysis& analysis, const frames::Selection& selection,
            const std::optional<FitOptions>& options);
  ~WholePass();
  WholePass(const WholePass&) = delete;
  WholePass& operator=(const WholePass&) = delete;

  void begin(underflow::LogFindings& log);
  /// One of the step's tensors that somebody has loaded. tell: of this step.
  void take(const frames::WholeStep& step, const log::NamedTensor& tensor,
            const frames::ProgressCallback& tell);
  /// All that are left of the step. Loads one at a time.
  void take(const frames::WholeStep& step, const frames::ProgressCallback& tell);
  /// Sums that were counted before.
  void take(const frames::CountedSums& counted);
  /// Ends the log that was begun.
  void finish_log();
  /// After the last one.
  void finish();

 private:
  struct OfLog;

  underflow::Analysis& analysis_;
  const frames::Selection& selection_;
  std::optional<FitOptions> options_;
  std::unique_ptr<OfLog> log_;
  frames::Notes notes_;  ///< after all that others have to say
};

}  // namespace halfscope::analyzers::formats
