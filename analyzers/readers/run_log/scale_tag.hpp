// SPDX-License-Identifier: Apache-2.0
// --recorded-scale TAG of a run log: which of its scalars is the loss scale that values carry.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "analyzers/frames/source.hpp"

namespace halfscope::analyzers::readers::run_log {

class ScaleTag {
 public:
  /// Throws log::BadInput, with the scalars there are, where the selection names one that the log
  /// does not have at any step.
  ScaleTag(const log::RunLog& log, const frames::Selection& selection);

  /// Gives a record that is scaled the scale of its step: not known where the step has no such
  /// scalar.
  void set(log::TensorRecord& record) const;

 private:
  std::optional<std::map<std::int64_t, double>> scales_;  // empty: no tag is given
};

}  // namespace halfscope::analyzers::readers::run_log
