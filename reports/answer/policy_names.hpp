// SPDX-License-Identifier: Apache-2.0
// Policies as people name them: also by framework, in any case, and what was meant by a name that
// is not known.
#pragma once

#include <string>
#include <string_view>

#include "halfscope/policy/policy.hpp"

namespace halfscope::reports::answer {

/// The name before the settings, in lower case: "fastai" of "FastAI, init_scale=4".
std::string policy_name_in(std::string_view text);

/// The policy behind a framework's dynamic scaling: "torch" of "fastai"; of any other name itself.
std::string policy_of_framework(std::string_view framework);

/// As policy::make, with frameworks' names, in any case, and blanks. Throws std::invalid_argument:
/// an unknown name lists all there are, those that are near first.
policy::Policy policy_called(std::string_view text);

}  // namespace halfscope::reports::answer
