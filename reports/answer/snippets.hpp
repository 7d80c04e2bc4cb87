// SPDX-License-Identifier: Apache-2.0
// Lines to paste into a training script, by framework. Names and defaults are from the versions
// that tests/python/framework_signatures.json lists.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzers/study.hpp"

namespace halfscope::reports::answer {

/// Lines to paste, and how to use them. A string is empty if there is nothing to paste or say.
struct Lines {
  std::string lines = {}, note = {};
};

/// Settings for one framework.
struct Snippet {
  std::string_view framework;  ///< a key of `snippets` in the JSON: "pytorch", "mxnet", ...
  std::string label;           ///< as people write it: "PyTorch"
  std::string_view policy;     ///< the policy of its dynamic scaling: "torch"
  Lines fixed = {};            ///< a static scale; empty if none is recommended
  Lines dynamic = {};          ///< dynamic scaling; empty if no settings are advised

  /// Returns the lines that are shown first: the static scale, or if there is none the dynamic one.
  const Lines& first() const { return fixed.lines.empty() ? dynamic : fixed; }
};

/// Returns the keys of all frameworks, PyTorch first.
std::vector<std::string> framework_names();

/// Returns true if there are lines to paste: the target is FP16, a scale or settings are advised,
/// the run may use FP16, and its gradients do not seem to carry an unknown scale.
bool worth_pasting(const analyzers::Study& study);

/// Returns one snippet for each framework with lines, PyTorch first, and one for the run's own
/// policy if none of these has it. Empty unless worth_pasting().
std::vector<Snippet> snippets(const analyzers::Study& study);

/// Returns the snippet of a framework; if `framework` is empty, of the run's own policy, else
/// PyTorch's. Returns null if there is none.
const Snippet* snippet_of(const std::vector<Snippet>& snippets, const analyzers::Study& study,
                          std::string_view framework = "");

}  // namespace halfscope::reports::answer
