// SPDX-License-Identifier: Apache-2.0
// Decides if tensors of sums differ by the order of addition only, or by a bug. docs/compare.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/reduction/order_bound.hpp"

namespace halfscope::analyzers::compare {

/// Description of the tensors' elements: sums of a number of addends in a format.
struct OrderAsked {
  reduction::Sums sums;
  std::string format;
  /// Name of a tensor of A that holds the sums of the addends' magnitudes; empty: they are unknown.
  std::string magnitudes = {};
};

struct ComparedOrder {
  std::string name;                 ///< as ComparedTensor has it
  std::vector<std::int64_t> steps;  ///< steps at which both runs have the whole tensor
  reduction::OrderVerdict verdict;  ///< over these steps
  std::int64_t worst_step = 0;      ///< the step of verdict.worst
};

/// A tensor and the loss scale that its values carry.
struct Scaled {
  const log::NamedTensor& tensor;
  double scale;
};

/// Judges pairs of whole tensors, one by one.
class OrderJudge {
 public:
  explicit OrderJudge(const OrderAsked& asked) : asked_(asked), limit_(asked.sums) {}

  /// Judges one tensor of both runs; ignores tensors of different size. `step`: the step of A.
  /// Throws log::BadInput if the ratio of the scales is no power of two: unscaling would round.
  void take(const frames::WholeStep& step, const std::string& name, const Scaled& a,
            const Scaled& b);
  /// Returns the verdicts by name. Throws log::BadInput if nothing was judged, or if no judged
  /// tensor is as large as the tensor of magnitudes.
  std::vector<ComparedOrder> finish(const std::string& logs) &&;

 private:
  const OrderAsked& asked_;
  reduction::RandomLimit limit_;
  std::map<std::string, ComparedOrder> found_;
  bool magnitudes_fit_ = false;
};

}  // namespace halfscope::analyzers::compare
