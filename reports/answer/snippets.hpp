// SPDX-License-Identifier: Apache-2.0
// Lines to paste into a training script, by framework. Names and defaults are those of the versions
// that tests/python/framework_signatures.json records.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzers/study.hpp"

namespace halfscope::reports::answer {

/// Lines to paste, and what to know of them; both may be empty.
struct Lines {
  std::string lines = {}, note = {};
};

/// Settings for one framework.
struct Snippet {
  std::string_view framework;  ///< a key of `snippets` in the JSON: "pytorch", "mxnet", ...
  std::string label;           ///< as people write it: "PyTorch"
  std::string_view policy;     ///< behind its dynamic scaling: "torch"
  Lines fixed = {};    ///< a static loss scale; empty where it is no more than an upper bound
  Lines dynamic = {};  ///< dynamic loss scaling; empty where none is advised

  /// What is shown first: the static scale, where one is recommended.
  const Lines& first() const { return fixed.lines.empty() ? dynamic : fixed; }
};

/// Those there are, PyTorch first.
std::vector<std::string> framework_names();

/// Whether there are lines to paste. The frameworks' scalers serve FP16 alone. Of a run in bfloat16
/// that may not use it, and of gradients that carry a scale which is not known, lines would be
/// wrong.
bool worth_pasting(const analyzers::Study& study);

/// One a framework, PyTorch first, those without lines left out, and that of the run's own policy
/// where it is another; none where no scale is recommended, or the format is not FP16.
std::vector<Snippet> snippets(const analyzers::Study& study);

/// That of a framework; without a name that of the run's own policy, else PyTorch's. Null where
/// there is none.
const Snippet* snippet_of(const std::vector<Snippet>& snippets, const analyzers::Study& study,
                          std::string_view framework = "");

}  // namespace halfscope::reports::answer
