// SPDX-License-Identifier: Apache-2.0
// A part of a report as data: sentences, then tables. Strings may have marks (marks.hpp).
#pragma once

#include <string>
#include <vector>

#include "reports/answer/table.hpp"

namespace halfscope::reports::answer {

/// Lines to paste, shown unchanged.
struct PasteLines {
  std::string label;  ///< the file or program to paste them into
  std::string lines;
  std::string note = {};  ///< how to use the lines; empty if that needs no words
};

struct Section {
  std::string title;
  std::vector<std::string> sentences = {};  ///< each is complete without the others
  std::vector<Table> tables = {};           ///< each with at least one row
  std::vector<PasteLines> pastes = {};      ///< shown between sentences and tables

  bool empty() const { return sentences.empty() && tables.empty(); }
};

}  // namespace halfscope::reports::answer
