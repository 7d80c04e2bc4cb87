// SPDX-License-Identifier: Apache-2.0
// What an analysis would be in bfloat16. That a run is in bfloat16 is known when all of it has been
// read: what is needed to judge it so is kept meanwhile, and it is not read again.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analyzers/underflow/underflow.hpp"

namespace halfscope::analyzers::underflow {

/// Where one step's values of a tensor go in a format.
struct StepClasses {
  Classes classes;
  Interval overflow_at_1;  ///< StepFindings::overflow_at_1
};
StepClasses classes_of(const frames::Frame& frame, const Target& target, double loss_scale);

class InBfloat16 {
 public:
  /// As analyze() is asked for the analysis.
  InBfloat16(const Target& target, const frames::Selection& selection);

  /// Sees the frames of a log as they are read: for a Companion of analyze().
  std::function<void(const frames::Frame&)> begin(const std::string& log);

  /// Makes the analysis of these logs what analyze() would find in bfloat16. False, and nothing
  /// done, where they must be read again: a scale is no power of two, so that tables counted for
  /// another format are not exact for this one.
  bool judge(Analysis& analysis) const;

 private:
  struct Tensor {
    std::vector<std::int64_t> steps;  ///< in the order of the frames
    /// By place in `steps`. Nearly always all values are normal numbers: then nothing is kept.
    std::map<std::size_t, StepClasses> unusual;
    bool hidden = false;  ///< TensorFindings::hidden_by_buckets
  };
  using Tensors = std::map<std::string, Tensor>;

  void add(const frames::Frame& frame, Tensors& tensors);
  /// Null where it is not as it was seen.
  const Tensor* find(const TensorFindings& tensor) const;
  void judge(TensorFindings& tensor, const Tensor& seen) const;

  Target target_;
  double loss_scale_;
  bool at_run_scale_;
  bool possible_ = true;  ///< no gradient is in binary16, and all scales are powers of two
  std::map<std::string, Tensors> logs_;
};

}  // namespace halfscope::analyzers::underflow
