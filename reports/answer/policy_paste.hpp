// SPDX-License-Identifier: Apache-2.0
// A policy with its settings as lines for its framework: a call in Python, a section of a
// configuration file, or flags of a command line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "halfscope/policy/policy.hpp"

namespace halfscope::reports::answer {

struct Paste {
  std::string where;  ///< "PyTorch", "DeepSpeed's configuration file"
  std::string lines;
  std::string note;  ///< what else to know; a sentence, may be empty
};

/// Empty where the framework has no such lines, or they have no place for one of the settings.
/// `framework`: "fastai" of those that one policy serves.
std::optional<Paste> paste_of(const policy::Policy& policy, std::string_view framework = "");

/// Why there are no dynamic settings to search; empty where there are.
std::string why_not_tunable(const policy::Policy& policy);

}  // namespace halfscope::reports::answer
