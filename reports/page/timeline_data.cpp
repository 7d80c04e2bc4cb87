// SPDX-License-Identifier: Apache-2.0
#include "reports/page/timeline_data.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "reports/page/own_chart.hpp"

namespace halfscope::reports::page {

using analyzers::scale_history::TimelineFacts;
using json = nlohmann::ordered_json;

namespace {

/// Rows of [step, scale, log2 of the scale, skipped], by step.
using Rows = std::multimap<std::int64_t, json>;

void add_row(Rows& rows, std::int64_t step, std::optional<double> scale, bool skipped) {
  if (!scale || !(*scale > 0) || !std::isfinite(*scale)) return;
  rows.emplace(step, json::array({step, *scale, std::log2(*scale), skipped}));
}

/// Returns the rows without those that equal both neighbours: the line is the same.
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

/// Returns one log's rows. A step without a scale has the scale before it. If skipped steps cannot
/// be identified, the scales before and after them are drawn. The last scale is drawn up to the
/// last step, unless it must have grown unrecorded.
json rows_of(const analyzers::underflow::LogFindings& log, const TimelineFacts& facts) {
  Rows rows;
  std::optional<double> scale;
  for (const log::StepScalars& scalars : log.scalars) {
    if (scalars.loss_scale && *scalars.loss_scale > 0) scale = scalars.loss_scale;
    const bool skipped = scalars.found_inf.value_or(false);
    if (scalars.loss_scale || skipped) add_row(rows, scalars.step, scale, skipped);
  }
  for (const auto& range : log.skips) {
    add_row(rows, range.first, range.scale_from, false);
    // If the log ends among skipped steps, assume that each step was skipped: the earliest end.
    const auto skipped = static_cast<std::int64_t>(range.count.low);
    add_row(rows, range.last ? *range.last + 1 : range.first + skipped, range.scale_to, false);
  }
  const bool ends_before = !rows.empty() && facts.last && rows.rbegin()->first < *facts.last;
  if (ends_before && !facts.grew_unseen) add_row(rows, *facts.last, facts.scale_last, false);
  return changes(rows);
}

/// Returns the rows by the index of the log, for logs that have any.
std::map<std::size_t, json> rows_of(const analyzers::Findings& found) {
  std::map<std::size_t, json> all;
  const auto& logs = found.analysis.logs;
  for (const TimelineFacts& facts : found.timelines) {
    const auto log = std::ranges::find(logs, facts.log, &analyzers::underflow::LogFindings::name);
    if (log == logs.end()) continue;
    json rows = rows_of(*log, facts);
    if (!rows.empty()) all[static_cast<std::size_t>(log - logs.begin())] = std::move(rows);
  }
  return all;
}

}  // namespace

bool draws_timeline(const analyzers::Findings& found) { return !rows_of(found).empty(); }

void put_timeline_chart(const analyzers::Findings& found, json& to) {
  const std::map<std::size_t, json> all = rows_of(found);
  if (all.empty()) return;
  to["timeline"] = own_chart({"step", "scale", "log2", "skipped"});
  for (const auto& [log, rows] : all) to["timeline"]["rows"][std::to_string(log)]["all"] = rows;
}

}  // namespace halfscope::reports::page
