// SPDX-License-Identifier: Apache-2.0
// The elements of a tensor as addends of what a layer or the loop computes from it. Internal to
// reduction/.
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

/// The sums of one log that its tensors are the input of: by the class of their modules, as the
/// network's text has it, and by the shape of their weights.
class ElementTerms {
 public:
  ElementTerms(const underflow::LogFindings& log, bool gradient_norms);

  /// The selected tensors of one rank at one step.
  void take(const frames::WholeStep& step, const frames::Selection& selection,
            const TakeElements& take, const frames::TakeLoaded& beside) const;

 private:
  struct Plan {
    Sum sum = Sum::gradient;
    Layout layout;
    std::vector<std::uint64_t> shape;  ///< of the tensor
  };
  std::map<std::string, std::vector<Plan>, std::less<>> plans_;  ///< by tensor
};

}  // namespace halfscope::analyzers::reduction
