// SPDX-License-Identifier: Apache-2.0
// A policy as lines for its framework: Python code, a configuration file's section, or flags.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "halfscope/policy/policy.hpp"

namespace halfscope::reports::answer {

struct Paste {
  std::string where;  ///< "PyTorch", "DeepSpeed's configuration file"
  std::string lines;
  std::string note;  ///< one sentence; empty if the lines need none
};

/// Returns the lines for a policy. Empty if its framework has no such lines, or if they cannot
/// express one of the settings. `framework`: selects one of several frameworks with the same
/// policy, such as "fastai"; empty selects the first.
std::optional<Paste> paste_of(const policy::Policy& policy, std::string_view framework = "");

/// Returns why no dynamic settings can be searched for the policy. Empty if they can.
std::string why_not_tunable(const policy::Policy& policy);

}  // namespace halfscope::reports::answer
