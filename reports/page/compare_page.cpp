// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

#include "reports/answer/comparison.hpp"
#include "reports/answer/text.hpp"
#include "reports/export/json.hpp"
#include "reports/page/html.hpp"
#include "reports/page/page.hpp"
#include "reports/page/template.hpp"

namespace halfscope::reports::page {

using analyzers::compare::ComparedTensor;
using analyzers::compare::Comparison;
using analyzers::compare::RunTotals;
using answer::ComparisonAnswer;

using json = nlohmann::ordered_json;

namespace {

std::string about_html(const ComparisonAnswer& said) {
  return fmt::format("A: {}, B: {}. {}", marked_html(said.a), marked_html(said.b),
                     marked_html(said.counted_for));
}

std::string list_html(const std::vector<std::string>& sentences, std::string_view kind) {
  std::string out = fmt::format("<ul class=\"{}\">\n", kind);
  for (const std::string& sentence : sentences) {
    out += "<li>" + marked_html(sentence) + "</li>\n";
  }
  return out + "</ul>\n";
}

/// Returns the values of A and B in a row of the facts.
std::string values_html(const answer::Row& row) {
  return marked_html(row.cells[1].text) + " \u2192 " + marked_html(row.cells[2].text);
}

/// Returns a tile for each fact, with its parts.
std::string tiles(const answer::Table& table) {
  std::string out = "<div class=\"tiles even\">\n";
  for (std::size_t i = 0; i < table.rows.size();) {
    const answer::Row& fact = table.rows[i];
    out += fmt::format("<div class=\"tile\"><h3>{}</h3><p class=\"value\">{}</p>",
                       marked_html(fact.cells[0].text), values_html(fact));
    for (++i; i < table.rows.size() && table.rows[i].part; ++i) {
      out += fmt::format("<p class=\"detail\">{}: {}</p>", marked_html(table.rows[i].cells[0].text),
                         values_html(table.rows[i]));
    }
    out += "</div>\n";
  }
  return out + "</div>\n";
}

std::string summary(const ComparisonAnswer& said) {
  std::string out = "<p class=\"answer\"><strong>" + marked_html(said.verdict) + "</strong>";
  for (const std::string& reason : said.reasons) out += " " + marked_html(reason);
  return out + "</p>\n" + tiles(said.facts) + list_html(said.values, "note");
}

/// Returns a section with its title; empty if it has no content.
std::string titled(std::string_view id, answer::Section section) {
  if (section.empty()) return "";
  const std::string title = std::exchange(section.title, "");
  return fmt::format("<section id=\"{0}\" aria-labelledby=\"h-{0}\">\n<h2 id=\"h-{0}\">{1}</h2>\n",
                     id, marked_html(title)) +
         section_html(section) + "</section>\n";
}

std::string operations(const ComparisonAnswer& said) {
  if (said.operations.empty()) return "";
  std::string out =
      "<section id=\"operations\" aria-labelledby=\"h-operations\">\n"
      "<h2 id=\"h-operations\">Operations against their emulation</h2>\n";
  for (const answer::Section& run : said.operations) {
    out += "<h3>" + marked_html(run.title) + "</h3>\n" + list_html(run.sentences, "said");
    for (const answer::Table& table : run.tables) out += table_html(table);
  }
  return out + "</section>\n";
}

/// Returns true if the run has a loss scale other than 1.
bool has_scaling(const RunTotals& run) {
  return std::any_of(run.scales.begin(), run.scales.end(),
                     [](const auto& at) { return at.second != 1; });
}

std::string loss_section(const Comparison& c, const ComparisonAnswer& said) {
  const bool losses = !c.runs.a.loss.empty() || !c.runs.b.loss.empty();
  const bool scales = has_scaling(c.runs.a) || has_scaling(c.runs.b);
  if (!losses && !scales) return "";
  constexpr std::string_view kKeys =
      "<span class=\"key now\">A</span> <span class=\"key advised\">B</span>";
  std::string out = fmt::format("<section aria-labelledby=\"h-loss\">\n<h2 id=\"h-loss\">{}</h2>\n",
                                !scales  ? "Loss"
                                : losses ? "Loss and loss scale"
                                         : "Loss scale");
  out += fmt::format("<p class=\"note\">{} {}</p>\n", kKeys, marked_html(said.losses));
  if (losses) out += "<figure class=\"chart\" data-chart=\"loss\"></figure>\n";
  if (scales) {
    out +=
        "<p class=\"note\">Triangles: skipped steps.</p>\n"
        "<figure class=\"chart\" data-chart=\"scales\"></figure>\n";
  }
  return out + "</section>\n";
}

std::string table(const answer::Table& tensors) {
  std::vector<Row> rows = rows_of(tensors);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].chooses = i;
  return bare_table(tensors.headings, rows, "worst");
}

std::string options(const Comparison& c) {
  std::string out;
  for (std::size_t i = 0; i < c.tensors.size(); ++i) {
    out +=
        fmt::format("<option value=\"{}\">{}</option>\n", i, answer::html_name(c.tensors[i].name));
  }
  return out;
}

std::string notes(const Comparison& c) {
  std::vector<std::string> lines(c.notes.begin(), c.notes.end());
  for (const std::string& name : c.only.a) lines.push_back("only in A: " + name);
  for (const std::string& name : c.only.b) lines.push_back("only in B: " + name);
  if (lines.empty()) return "";
  std::string out = fmt::format("<details class=\"notes\"><summary>{}</summary><ul>\n",
                                answer::plural(lines.size(), "note"));
  for (const std::string& line : lines) out += "<li>" + answer::html_name(line) + "</li>\n";
  return out + "</ul></details>\n";
}

/// Returns the index of the tensor whose magnitudes changed most.
std::size_t most_moved(const Comparison& c) {
  const auto moved = [](const ComparedTensor& t) { return t.largest_share_difference.value_or(0); };
  const auto most = std::max_element(
      c.tensors.begin(), c.tensors.end(),
      [&](const ComparedTensor& x, const ComparedTensor& y) { return moved(x) < moved(y); });
  return static_cast<std::size_t>(most - c.tensors.begin());
}

json charts(const Comparison& c) {
  json out = {{"facts", json::array()}, {"first_tensor", most_moved(c)}};
  for (const ComparedTensor& t : c.tensors) out["facts"].push_back(answer::tensor_facts(t));
  return out;
}

/// Returns the contents of the template's markers <!--halfscope:NAME-->.
Parts parts(const Comparison& c, std::string_view title) {
  const ComparisonAnswer said = answer::comparison_answer(c);
  return {
      {"title", answer::html_name(title)},
      {"about", about_html(said)},
      {"summary", summary(said)},
      {"operations", titled("stored", said.stored) + titled("sums", said.sums) + operations(said)},
      {"loss", loss_section(c, said)},
      {"heading", marked_html(said.tensors.title)},
      {"lost", marked_html(said.tensors.note)},
      {"worst", table(said.tensors)},
      {"options", options(c)},
      {"notes", notes(c)},
      {"islands",
       json_island("comparison", exports::to_json(c)) + json_island("charts", charts(c))}};
}

}  // namespace

std::string compare_html(const Comparison& comparison, std::string_view title) {
  require_charts();
  return filled(compare_template(), parts(comparison, title));
}

void write_compare_page(const Comparison& comparison, std::string_view title,
                        const std::filesystem::path& out) {
  write_page(compare_html(comparison, title), out);
}

}  // namespace halfscope::reports::page
