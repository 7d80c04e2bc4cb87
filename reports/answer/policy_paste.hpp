// SPDX-License-Identifier: Apache-2.0
// Policies by the names that users give, and as lines for their frameworks: Python code, a section
// of a configuration file, or flags.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "halfscope/policy/policy.hpp"

namespace halfscope::reports::answer {

/// Returns the name before the settings, in lower case: "fastai" for "FastAI, init_scale=4".
std::string policy_name_in(std::string_view text);

/// Returns the policy of a framework: "torch" for "fastai". Returns other names unchanged.
std::string policy_of_framework(std::string_view framework);

/// Like policy::make, but also accepts names of frameworks, upper case and blanks. Throws
/// std::invalid_argument for an unknown name; the message lists all names, similar ones first.
policy::Policy policy_called(std::string_view text);

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
