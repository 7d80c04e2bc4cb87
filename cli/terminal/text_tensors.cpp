// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_tensors.hpp"

#include "cli/terminal/text_histogram.hpp"
#include "cli/terminal/text_table.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/tensor_words.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {

std::string tensors_text(const analyzers::Findings& found) {
  std::string out;
  for (const std::string& sentence : reports::answer::tensors_sentences(found)) {
    out += reports::answer::wrapped_text(reports::answer::plain(sentence), kTextColumns, 0);
  }
  const std::string histogram = histogram_text(found.analysis);
  return out + "\n" + histogram + (histogram.empty() ? "" : "\n") +
         table_text(reports::answer::tensors_table(found.analysis));
}

}  // namespace halfscope::cli::terminal
