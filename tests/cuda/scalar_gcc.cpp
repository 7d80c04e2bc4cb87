// SPDX-License-Identifier: Apache-2.0
// The scalar operations as g++ compiles them.
#include "cuda/every_operation.hpp"

namespace twin {

std::vector<Outcome> by_gcc(const std::vector<Call>& calls) {
  std::vector<Outcome> out;
  out.reserve(calls.size());
  for (const Call& c : calls) out.push_back(halfscope::every::outcome(c));
  return out;
}

}  // namespace twin
