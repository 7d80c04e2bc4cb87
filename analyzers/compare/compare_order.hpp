// SPDX-License-Identifier: Apache-2.0
// Tensors of sums that were added in different orders: rounding, or a bug. docs/compare.md.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/reduction/order_bound.hpp"

namespace halfscope::analyzers::compare {

/// The tensors' elements: sums of so many addends in a format.
struct OrderAsked {
  reduction::Sums sums;
  std::string format;
  /// A tensor of A, of the sums of the addends' magnitudes; empty: they are not known.
  std::string magnitudes = {};
};

struct ComparedOrder {
  std::string name;                 ///< as ComparedTensor has it
  std::vector<std::int64_t> steps;  ///< at which both have the whole tensor
  reduction::OrderVerdict verdict;  ///< over these
  std::int64_t worst_step = 0;      ///< the step of its `worst`
};

/// A tensor, and the loss scale that its values carry.
struct Scaled {
  const log::NamedTensor& tensor;
  double scale;
};

/// Judges pairs of whole tensors, one by one.
class OrderJudge {
 public:
  explicit OrderJudge(const OrderAsked& asked) : asked_(asked), limit_(asked.sums) {}

  /// One tensor of both, with the loss scales that they carry. step: of A. Throws log::BadInput
  /// where the scales differ by another factor than a power of two: that rounds, too.
  void take(const frames::WholeStep& step, const std::string& name, const Scaled& a,
            const Scaled& b);
  /// By name. Throws log::BadInput where nothing was judged, or no tensor is as large as that of
  /// the magnitudes.
  std::vector<ComparedOrder> finish(const std::string& logs) &&;

 private:
  const OrderAsked& asked_;
  reduction::RandomLimit limit_;
  std::map<std::string, ComparedOrder> found_;
  bool magnitudes_fit_ = false;
};

}  // namespace halfscope::analyzers::compare
