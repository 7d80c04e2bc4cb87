// SPDX-License-Identifier: Apache-2.0
#include "analyzers/recommend/no_step_held.hpp"

namespace halfscope::analyzers::recommend {

bool no_step_held(const Recommendation& advice) {
  if (!advice.static_log2 || !advice.limited_by || !advice.limited_by->censored) return false;
  if (!advice.skip || advice.skip->steps == 0) return false;
  return advice.skip->exceedances + advice.skip->perhaps == advice.skip->steps;
}

}  // namespace halfscope::analyzers::recommend
