// SPDX-License-Identifier: Apache-2.0
// The magnitudes that bound a loss scale: of tables, and of the scalars that a run log has for
// every step.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "analyzers/recommend/recommend.hpp"
#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers::recommend {

/// A magnitude, and how it bounds the scale.
struct Peak {
  underflow::StepMagnitude magnitude;
  Limit limit;
};

struct PeakVisitor {
  std::function<void(const Peak&)> peak;
  /// Infinities or NaN of a step that tell no magnitude: no rounding to binary16 made them (of NaN:
  /// something else may explain it), or (scale_known false) the loss scale that they were computed
  /// at is unknown.
  std::function<void(std::int64_t step, bool scale_known)> nonfinite;
};

/// The peaks of one log; it must outlive this.
class LogPeaks {
 public:
  LogPeaks(const Basis& basis, const underflow::LogFindings& log);

  /// Of one of its tensors that a loss scale acts on, by step.
  void of_tensor(const underflow::TensorFindings& tensor, const PeakVisitor& visit) const;
  /// Of the scalars of every step, also of those without tables.
  void of_scalars(const PeakVisitor& visit) const;

  const underflow::LogFindings& log() const { return log_; }
  const underflow::LogScalars& scalars() const { return scalars_; }

 private:
  const Basis& basis_;
  const underflow::LogFindings& log_;
  underflow::LogScalars scalars_;
  std::set<log::Role> in_fp16_;  ///< roles of which some tensor was computed in binary16
};

/// Those of every log, by its name.
class AllPeaks {
 public:
  explicit AllPeaks(const Basis& basis);
  const LogPeaks& of(const std::string& log) const { return logs_.at(log); }
  const Basis& basis() const { return basis_; }

 private:
  const Basis& basis_;
  std::map<std::string, LogPeaks> logs_;
};

}  // namespace halfscope::analyzers::recommend
