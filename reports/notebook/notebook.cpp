// SPDX-License-Identifier: Apache-2.0
#include "reports/notebook/notebook.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "halfscope/log/error.hpp"
#include "reports/answer/answer.hpp"
#include "reports/answer/captions.hpp"
#include "reports/answer/comparison.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/timeline.hpp"
#include "reports/charts/charts.hpp"
#include "reports/page/page_data.hpp"

namespace halfscope::reports::notebook {

using analyzers::Study;
using analyzers::underflow::Analysis;
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

/// Parameters of the charts of series, by kind of series.
struct Parameters {
  json scaled, unscaled, gradients;

  explicit Parameters(const Study& study) {
    const charts::Window window = charts::window_of(study.analysis, study.advice);
    scaled = charts::series_parameters(window);
    unscaled = charts::series_parameters(charts::unscaled(window));
    gradients = charts::gradient_parameters(charts::gradient_window(study.analysis, study.advice));
  }
};

/// A sum over tensors of one log, with the names for its charts.
struct Drawn {
  const Study& study;
  const answer::Tensors& tensors;
  std::string log, name;
  bool scaled = false;  ///< true if a loss scale acts on it
  answer::Series series = answer::sum(tensors);

  bool empty() const { return series.counts.finite_nonzero.high == 0; }
};

void add(json& to, const Drawn& drawn, std::string_view chart, const json& parameters,
         json&& rows) {
  if (rows.empty()) return;
  to.push_back({{"name", fmt::format("{}/{}", chart, drawn.name)},
                {"chart", chart},
                {"log", drawn.log},
                {"parameters", parameters},
                {"rows", std::move(rows)}});
}

void add_series(json& to, const Drawn& drawn, const Parameters& parameters) {
  if (drawn.empty()) return;
  const json& of = drawn.scaled ? parameters.scaled : parameters.unscaled;
  add(to, drawn, "histogram", of, charts::bar_rows(drawn.series));
  add(to, drawn, "heat", of, charts::cell_rows(drawn.series));
  add(to, drawn, "scales", of,
      charts::scale_rows(drawn.tensors, drawn.series, drawn.study.analysis.target));
}

void add_gradients(json& to, const Drawn& drawn, const Parameters& parameters) {
  if (drawn.empty()) return;
  add(to, drawn, "gradients", parameters.gradients, charts::bar_rows(drawn.series));
  to.back()["name"] = "gradients";
}

void add_log(json& to, const Study& study, const analyzers::underflow::LogFindings& log,
             const Parameters& parameters) {
  const std::string name = log::printable(log.name);
  const answer::Tensors tensors = answer::of_log(log);
  const answer::Tensors gradients = answer::counted_of(tensors);
  const Drawn all{study, gradients, name, "gradients", true};
  add_gradients(to, all, parameters);
  if (!all.empty()) {
    add(to, all, "scales", parameters.scaled,
        charts::scale_rows(gradients, all.series, study.analysis.target));
  }
  for (const log::Role role : answer::roles_in(study.analysis)) {
    const answer::Tensors of_role = answer::of_role(tensors, role);
    add_series(to,
               {study, of_role, name, std::string(name_of(role)),
                answer::is_counted(study.analysis, role)},
               parameters);
  }
}

/// Returns the captions of the charts with rows of their own, by the specification's name.
std::map<std::string, answer::Caption, std::less<>> captions(const Study& study) {
  const analyzers::underflow::Target& target = study.analysis.target;
  return {{"update-map", answer::update_map_caption(target, false)},
          {"update-ratios", answer::update_ratios_caption(charts::first_ratio(target))},
          {"update-errors", answer::kUpdateErrorsCaption},
          {"outcomes", answer::outcomes_caption(charts::kBarsDrawn)},
          {"rooms", answer::headroom_caption(study)},
          {"trends", answer::kHeadroomStepsCaption},
          {"policy-scales", answer::kPolicyScalesCaption},
          {"policy-flushed", answer::kPolicyFlushedCaption},
          {"timeline", answer::timeline_caption(study)},
          {"fits", answer::kFitsCaption},
          {"recipes", answer::kRecipesCaption}};
}

json named(const json& fields, const json& rows) {
  json out = json::array();
  for (const json& row : rows) {
    json object = json::object();
    for (std::size_t i = 0; i < row.size() && i < fields.size(); ++i) {
      object[fields[i].get<std::string>()] = row[i];
    }
    out.push_back(std::move(object));
  }
  return out;
}

/// Adds the charts of one log with rows of their own, except those of single weights.
void add_own(json& to, const Study& study, const json& own, std::size_t log) {
  const auto titles = captions(study);
  const std::string at = std::to_string(log);
  for (const auto& [chart, parts] : own.items()) {
    if (!parts["rows"].contains(at)) continue;
    for (const auto& [key, rows] : parts["rows"][at].items()) {
      const bool weight = key.find_first_not_of("0123456789") == key.npos;
      if (weight || rows.empty()) continue;
      json entry = {{"name", key == "all" ? chart : chart + "/" + key},
                    {"chart", chart},
                    {"log", log::printable(study.analysis.logs[log].name)}};
      if (const auto found = titles.find(chart); found != titles.end()) {
        entry["title"] = found->second.title;
        entry["note"] = found->second.note;
      }
      entry["parameters"] = parts["parameters"];
      entry["rows"] = named(parts["fields"], rows);
      to.push_back(std::move(entry));
    }
  }
}

}  // namespace

json shown(const analyzers::Study& study) {
  const answer::Answer answer = answer::answer_of(study);
  json to = empty();
  to["first"] = answer.first_lines();
  if (const answer::Snippet* const snippet = snippet_of(answer.snippets, study)) {
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
  if (!said.stored.empty()) to["sections"].push_back(section_json(said.stored));
  if (!said.sums.empty()) to["sections"].push_back(section_json(said.sums));
  for (const Section& run : said.operations) to["sections"].push_back(section_json(run));
  if (!said.tensors.empty()) to["sections"].push_back(section_json({"", {}, {said.tensors}}));
  return to;
}

json charts_of(const Study& study) {
  json out = json::array();
  const Parameters parameters(study);
  const json own = page::own_charts_json(study);
  for (std::size_t log = 0; log < study.analysis.logs.size(); ++log) {
    add_log(out, study, study.analysis.logs[log], parameters);
    add_own(out, study, own, log);
  }
  return out;
}

json charts_of_tensor(const Study& study, const std::string& tensor) {
  json out = json::array();
  for (const analyzers::underflow::TensorFindings& found : study.analysis.tensors()) {
    if (found.name != tensor) continue;
    const answer::Tensors one = {&found};
    add_series(out,
               {study, one, log::printable(*found.log), log::printable(tensor), found.loss_scaled},
               Parameters(study));
    break;
  }
  return out;
}

}  // namespace halfscope::reports::notebook
