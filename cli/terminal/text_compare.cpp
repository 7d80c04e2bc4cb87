// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_compare.hpp"

#include <fmt/format.h>

#include "cli/terminal/text_answer.hpp"
#include "cli/terminal/text_section.hpp"
#include "cli/terminal/text_table.hpp"
#include "reports/answer/comparison.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {

using reports::answer::ComparisonAnswer;
using reports::answer::plain;
using reports::answer::Section;

std::string comparison_text(const analyzers::compare::Comparison& comparison) {
  const ComparisonAnswer said = reports::answer::comparison_answer(comparison);
  const auto line = [](const std::string& sentence) {
    return reports::answer::wrapped_text(plain(sentence), columns_of_stdout(), 0);
  };
  std::string out = fmt::format("A: {}\nB: {}\n", plain(said.a), plain(said.b)) +
                    line(said.counted_for) + "\n" + line(said.verdict);
  if (!said.sums.empty()) out += "\n" + section_text(said.sums) + "\n";
  out += section_text(Section{"", said.reasons}) + "\n" + table_text(said.facts) + "\n" +
         section_text(Section{"", said.values});
  if (!said.losses.empty()) out += section_text(Section{"", {said.losses}});
  for (const Section& run : said.operations) out += "\n" + section_text(run);
  return out + "\n" + table_text(said.tensors);
}

}  // namespace halfscope::cli::terminal
