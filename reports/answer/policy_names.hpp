// SPDX-License-Identifier: Apache-2.0
// Names that users may give for policies: also names of frameworks, in upper or lower case.
#pragma once

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

}  // namespace halfscope::reports::answer
