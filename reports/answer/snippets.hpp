// SPDX-License-Identifier: Apache-2.0
// Lines to paste into a training script, by framework. Names and defaults are those of the versions
// that tests/python/framework_signatures.json records.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzers/recommend/recommend.hpp"

namespace halfscope::reports::answer {

/// Settings for one framework.
struct Snippet {
  std::string_view framework;  ///< a key of `snippets` in the JSON: "pytorch", "mxnet", ...
  std::string_view label;      ///< as people write it: "PyTorch"
  std::string fixed;    ///< a static loss scale; empty where it is no more than an upper bound
  std::string dynamic;  ///< dynamic loss scaling; empty where `advice` has none
  std::string note;     ///< what to know of it; may be empty
};

/// Those there are, PyTorch first.
std::vector<std::string> framework_names();

/// One a framework, PyTorch first; none where no scale is recommended.
std::vector<Snippet> snippets(const analyzers::recommend::Recommendation& advice);

}  // namespace halfscope::reports::answer
