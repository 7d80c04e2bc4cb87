// SPDX-License-Identifier: Apache-2.0
// The magnitudes that bound a loss scale, from histograms and every-step scalars.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "analyzers/recommend/recommend.hpp"
#include "analyzers/underflow/step_facts.hpp"

namespace halfscope::analyzers::recommend {

/// A magnitude, and the limit that it sets for the scale.
struct Peak {
  underflow::StepMagnitude magnitude;
  Limit limit;
};

struct PeakVisitor {
  std::function<void(const Peak&)> peak;
  /// Called for infinities or NaN of a step that show no magnitude. scale_known true: no rounding
  /// to binary16 made them (or, for NaN, something else may explain it). scale_known false: the
  /// loss scale that they were computed at is unknown.
  std::function<void(std::int64_t step, bool scale_known)> nonfinite;
};

/// The peaks of one log. The log must outlive this object.
class LogPeaks {
 public:
  LogPeaks(const Basis& basis, const underflow::LogFindings& log);

  /// Visits the peaks of one of the log's tensors that a loss scale acts on, step by step.
  void of_tensor(const underflow::TensorFindings& tensor, const PeakVisitor& visit) const;
  /// Visits the peaks of the every-step scalars, also for steps without histograms.
  void of_scalars(const PeakVisitor& visit) const;

  const underflow::LogFindings& log() const { return log_; }
  const underflow::LogScalars& scalars() const { return scalars_; }

 private:
  const Basis& basis_;
  const underflow::LogFindings& log_;
  underflow::LogScalars scalars_;
  std::set<log::Role> in_fp16_;  ///< roles that have a tensor computed in binary16
};

/// The peaks of every log, by the log's name.
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
