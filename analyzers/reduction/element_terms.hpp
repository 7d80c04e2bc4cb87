// SPDX-License-Identifier: Apache-2.0
// Sums that a layer or the loop computes from the elements of a tensor. Internal to reduction/.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "analyzers/frames/whole_tensors.hpp"
#include "analyzers/reduction/element_sums.hpp"

namespace halfscope::analyzers::underflow {
struct LogFindings;
}

namespace halfscope::analyzers::reduction {

using TakeElements = std::function<void(const ElementSums&)>;

/// The sums of one log that have its tensors as input. They follow from the class of each module,
/// in the network's text, and from the shapes of the weights.
class ElementTerms {
 public:
  ElementTerms(const underflow::LogFindings& log, bool gradient_norms);

  /// Calls `take` for each sum of the selected tensors of one rank at one step, and `beside` with
  /// each tensor that was loaded for them.
  void take(const frames::WholeStep& step, const frames::Selection& selection,
            const TakeElements& take, const frames::TakeLoaded& beside) const;

 private:
  struct Plan {
    Sum sum = Sum::gradient;
    Layout layout;
    std::vector<std::uint64_t> shape;  ///< shape of the tensor
  };
  std::map<std::string, std::vector<Plan>, std::less<>> plans_;  ///< by tensor name
};

}  // namespace halfscope::analyzers::reduction
