// SPDX-License-Identifier: Apache-2.0
// A part of what is shown of a log, as data: sentences, then tables. Text has marks (marks.hpp).
#pragma once

#include <string>
#include <vector>

#include "reports/answer/table.hpp"

namespace halfscope::reports::answer {

/// Lines to paste somewhere, as they are.
struct PasteLines {
  std::string label;  ///< where they belong; may have marks
  std::string lines;
  std::string note = {};  ///< what to know of them; may be empty, may have marks
};

struct Section {
  std::string title;
  std::vector<std::string> sentences = {};  ///< each stands alone
  std::vector<Table> tables = {};           ///< none without rows
  std::vector<PasteLines> pastes = {};      ///< between both

  bool empty() const { return sentences.empty() && tables.empty(); }
};

}  // namespace halfscope::reports::answer
