// SPDX-License-Identifier: Apache-2.0
#include "reports/notebook/shown.hpp"

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>

#include "reports/answer/answer.hpp"
#include "reports/answer/comparison.hpp"
#include "reports/answer/evidence.hpp"
#include "reports/answer/first_words.hpp"

namespace halfscope::reports::notebook {

using answer::Section;
using answer::Table;

using json = nlohmann::ordered_json;

namespace {

json table_json(const Table& table) {
  json to = {{"title", table.title},       {"note", table.note},    {"headings", table.headings},
             {"numbers", json::array()},   {"rows", json::array()}, {"marked", json::array()},
             {"left_out", table.left_out}, {"all_by", table.all_by}};
  for (std::size_t i = 0; i < table.headings.size(); ++i) {
    to["numbers"].push_back(table.is_number(i));
  }
  for (const answer::Row& row : table.rows) {
    json cells = json::array();
    for (const answer::Cell& cell : row.cells) cells.push_back(cell.text);
    to["rows"].push_back(std::move(cells));
    to["marked"].push_back(row.marked);
  }
  return to;
}

json paste_json(const std::string& label, const std::string& lines, const std::string& note) {
  return {{"label", label}, {"lines", lines}, {"note", note}};
}

json section_json(const Section& section) {
  json to = {{"title", section.title},
             {"sentences", section.sentences},
             {"pastes", json::array()},
             {"tables", json::array()}};
  for (const answer::PasteLines& paste : section.pastes) {
    to["pastes"].push_back(paste_json(paste.label, paste.lines, paste.note));
  }
  for (const Table& table : section.tables) to["tables"].push_back(table_json(table));
  return to;
}

json sections_json(const std::vector<Section>& sections) {
  json out = json::array();
  for (const Section& section : sections) out.push_back(section_json(section));
  return out;
}

json empty() {
  return {{"first", json::array()},    {"paste", nullptr},
          {"numbers", json::array()},  {"clear", ""},
          {"findings", json::array()}, {"sections", json::array()}};
}

/// Returns the answer's explanation of the scale, as a section before the evidence.
Section details(const answer::Answer& answer) {
  Section section{std::string(answer::kDetailsTitle), answer.details};
  section.tables = answer.tables;
  return section;
}

}  // namespace

json shown(const analyzers::Study& study) {
  const answer::Answer answer = answer::answer_of(study);
  json to = empty();
  to["first"] = answer.first_lines();
  if (const answer::Snippet* const snippet = first_snippet(answer, study)) {
    const answer::Lines& lines = first_lines_of(*snippet, answer);
    to["paste"] = paste_json(snippet->label, lines.lines, lines.note);
  }
  for (const answer::Number& number : answer.numbers) {
    to["numbers"].push_back({{"kind", name_of(number.kind)},
                             {"title", number.title},
                             {"value", number.value},
                             {"detail", number.detail}});
  }
  to["clear"] = answer.clear;
  for (const answer::Finding& finding : answer.findings) {
    to["findings"].push_back({{"severity", name_of(finding.severity)},
                              {"title", finding.title},
                              {"action", finding.action}});
  }
  std::vector<Section> sections = answer::evidence_sections(study);
  if (Section first = details(answer); !first.empty()) {
    sections.insert(sections.begin(), std::move(first));
  }
  to["sections"] = sections_json(sections);
  return to;
}

json shown_findings(const analyzers::Findings& found) {
  json to = empty();
  std::istringstream first(answer::first_text(found));
  for (std::string line; std::getline(first, line);) {
    if (!line.empty()) to["first"].push_back(line);
  }
  to["sections"] = sections_json(answer::findings_sections(found));
  return to;
}

json shown(const std::vector<analyzers::replay::PolicyStudy>& studies, std::string_view asked,
           bool chosen) {
  json to = empty();
  for (const analyzers::replay::PolicyStudy& study : studies) {
    for (json& section : sections_json(answer::replay_sections(study, asked, chosen))) {
      to["sections"].push_back(std::move(section));
    }
  }
  return to;
}

json shown(const analyzers::compare::Comparison& comparison) {
  const answer::ComparisonAnswer said = answer::comparison_answer(comparison);
  json to = empty();
  to["first"] = {said.verdict};
  for (const std::string& reason : said.reasons) to["first"].push_back(reason);
  Section facts{"", said.values, {said.facts}};
  if (!said.losses.empty()) facts.sentences.push_back(said.losses);
  facts.sentences.push_back(said.counted_for);
  to["sections"].push_back(section_json(facts));
  if (!said.sums.empty()) to["sections"].push_back(section_json(said.sums));
  for (const Section& run : said.operations) to["sections"].push_back(section_json(run));
  if (!said.tensors.empty()) to["sections"].push_back(section_json({"", {}, {said.tensors}}));
  return to;
}

}  // namespace halfscope::reports::notebook
