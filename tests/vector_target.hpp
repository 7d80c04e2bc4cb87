// SPDX-License-Identifier: Apache-2.0
// One set of vector instructions at a time.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

#include "halfscope/device/vector_target.hpp"

namespace halfscope {

/// While it lives, code runs as on a processor that has this target and no better one.
class OnTarget {
 public:
  explicit OnTarget(const std::string& name) : before_(vector_target()) { use_vector_target(name); }
  ~OnTarget() { use_vector_target(before_); }
  OnTarget(const OnTarget&) = delete;
  OnTarget& operator=(const OnTarget&) = delete;

 private:
  std::string before_;
};

/// Those of this processor, the best first; where HALFSCOPE_TARGET names one, that one alone.
inline std::vector<std::string> targets() {
  const char* const chosen = std::getenv(kTargetVariable);
  if (chosen != nullptr && *chosen != '\0') return {vector_target()};
  return vector_targets();
}

}  // namespace halfscope
