// SPDX-License-Identifier: Apache-2.0
#include "reports/page/timeline_html.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <map>

#include "reports/answer/text.hpp"
#include "reports/answer/timeline_words.hpp"
#include "reports/page/own_chart.hpp"

namespace halfscope::reports::page {

using analyzers::underflow::Analysis;
using json = nlohmann::ordered_json;

namespace {

/// [step, scale, its log2, skipped], ascending.
using Rows = std::multimap<std::int64_t, json>;

void add_row(Rows& rows, std::int64_t step, std::optional<double> scale, bool skipped) {
  if (!scale || !(*scale > 0) || !std::isfinite(*scale)) return;
  rows.emplace(step, json::array({step, *scale, std::log2(*scale), skipped}));
}

/// A step without a scale has the one before. Of skipped steps that are not told apart, the scales
/// before and after them.
json rows_of(const analyzers::underflow::LogFindings& log) {
  Rows rows;
  std::optional<double> scale;
  for (const log::StepScalars& scalars : log.scalars) {
    if (scalars.loss_scale && *scalars.loss_scale > 0) scale = scalars.loss_scale;
    const bool skipped = scalars.found_inf.value_or(false);
    if (scalars.loss_scale || skipped) add_row(rows, scalars.step, scale, skipped);
  }
  for (const auto& range : log.skips) {
    add_row(rows, range.first, range.scale_from, false);
    if (range.last) add_row(rows, *range.last + 1, range.scale_to, false);
  }
  json list = json::array();
  for (const auto& [step, row] : rows) list.push_back(row);
  return list;
}

}  // namespace

void put_timeline_chart(const analyzers::Findings& found, json& to) {
  if (found.timelines.empty()) return;
  const Analysis& analysis = found.analysis;
  to["timeline"] = own_chart({"step", "scale", "log2", "skipped"});
  for (std::size_t log = 0; log < analysis.logs.size(); ++log) {
    const json rows = rows_of(analysis.logs[log]);
    if (!rows.empty()) to["timeline"]["rows"][std::to_string(log)]["all"] = rows;
  }
}

std::string timeline_html(const analyzers::Findings& found) {
  std::string out;
  for (const answer::TimelineWords& words : answer::timeline_words(found)) {
    out += fmt::format("<h3>{}</h3>\n<ul>\n", answer::html_escape(words.title));
    for (const std::string& line : words.lines) {
      out += "<li>" + answer::html_escape(line) + "</li>\n";
    }
    out += "</ul>\n";
  }
  if (out.empty()) return "";
  return out +
         "<p class=\"note\">The loss scale; triangles are skipped steps whose number is "
         "known.</p>\n"
         "<figure class=\"chart\" data-chart=\"timeline\"></figure>\n";
}

}  // namespace halfscope::reports::page
