// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_tensors.hpp"

#include "cli/terminal/text_histogram.hpp"
#include "cli/terminal/text_section.hpp"
#include "cli/terminal/text_table.hpp"
#include "reports/answer/tensor_words.hpp"

namespace halfscope::cli::terminal {

std::string tensors_text(const analyzers::Findings& found) {
  const std::string histogram = histogram_text(found.analysis);
  return section_text({"", reports::answer::tensors_sentences(found)}) + "\n" + histogram +
         (histogram.empty() ? "" : "\n") +
         table_text(reports::answer::tensors_table(found.analysis));
}

}  // namespace halfscope::cli::terminal
