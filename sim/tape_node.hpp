// SPDX-License-Identifier: Apache-2.0
// What a tape keeps of one value; for the files that record on tapes.
#pragma once

#include <string>

#include "sim/tape.hpp"

namespace halfscope::sim {

struct Tape::Node {
  std::string name;  ///< empty: a Watch is not told
  Tensor value;
  bool wanted = false;
  Step step;              ///< empty where nothing before it needs a gradient
  std::size_t reads = 0;  ///< so many nodes after it have no step: this one reads their gradients
  Tensor gradient;        ///< empty until the first use of the value has given one
  double scale = 1;       ///< that the gradient carries
};

}  // namespace halfscope::sim
