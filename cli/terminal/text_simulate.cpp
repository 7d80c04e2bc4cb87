// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_simulate.hpp"

#include "cli/terminal/text_answer.hpp"
#include "cli/terminal/text_section.hpp"
#include "cli/terminal/text_table.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {

std::string choices_text() {
  std::string out;
  for (const reports::answer::Table& table : simulate::choices()) out += table_text(table);
  return out;
}

std::string simulation_text(const simulate::Simulation& said) {
  std::string out;
  for (const std::string& sentence : said.first) {
    out += reports::answer::wrapped_text(reports::answer::plain(sentence), columns_of_stdout(), 0);
  }
  for (const reports::answer::Section& section : said.sections) {
    if (!section.empty()) out += "\n" + section_text(section);
  }
  return out + "\n" + said.next + "\n";
}

}  // namespace halfscope::cli::terminal
