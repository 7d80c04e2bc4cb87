// SPDX-License-Identifier: Apache-2.0
#include "reports/page/timeline_data.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <iterator>
#include <map>

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

/// The rows that differ from one beside them: a line is the same without the others.
json changes(const Rows& rows) {
  const auto same = [](const json& a, const json& b) { return a[1] == b[1] && a[3] == b[3]; };
  json list = json::array();
  for (auto at = rows.begin(); at != rows.end(); ++at) {
    const bool inner = at != rows.begin() && std::next(at) != rows.end();
    const bool needless = inner && !at->second[3] && same(std::prev(at)->second, at->second) &&
                          same(std::next(at)->second, at->second);
    if (!needless) list.push_back(at->second);
  }
  return list;
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
  return changes(rows);
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

}  // namespace halfscope::reports::page
