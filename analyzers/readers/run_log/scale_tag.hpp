// SPDX-License-Identifier: Apache-2.0
// --recorded-scale TAG for a run log: TAG names the scalar with the recorded values' loss scale.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::readers::run_log {

/// The loss scales that the named scalar has, by step.
class ScaleTag {
 public:
  /// Throws log::BadInput if the log has the scalar at no step; the message lists its scalars.
  ScaleTag(const log::RunLog& log, const frames::Selection& selection);

  /// Sets a scaled record's loss scale to the scalar of its step; unknown if the step has none.
  /// Does nothing without a tag.
  void set(log::TensorRecord& record) const;

 private:
  std::optional<std::map<std::int64_t, double>> scales_;  ///< by step; empty if no tag was given
};

}  // namespace halfscope::analyzers::readers::run_log
