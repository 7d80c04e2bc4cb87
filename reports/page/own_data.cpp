// SPDX-License-Identifier: Apache-2.0
#include "reports/page/page_data.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "analyzers/formats/format_fit.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/overflow.hpp"
#include "reports/answer/recipes.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/timeline.hpp"
#include "reports/answer/updates.hpp"
#include "reports/charts/charts.hpp"

namespace halfscope::reports::page {

using analyzers::Study;
using analyzers::scale_history::TimelineFacts;
using analyzers::underflow::Analysis;
using analyzers::underflow::TensorFindings;
using json = nlohmann::ordered_json;

namespace {

json cell_rows(const UpdateTable& table) {
  json out = json::array();
  for (const auto& [at, cell] : table.cells) {
    if (at.first == UpdateTable::kZeroWeight) continue;
    out.push_back({at.first, at.second, cell.count, cell.lost});
  }
  return out;
}

json ratio_rows(const UpdateTable& table) {
  json out = json::array();
  for (const auto& [e, cell] : table.ratios) out.push_back({e, cell.count, cell.lost});
  return out;
}

json error_rows(const UpdateTable& table) {
  json out = json::array();
  for (const auto& [e, count] : table.errors) out.push_back({e, count});
  return out;
}

json outcome_rows(const answer::Tensors& tensors) {
  json out = json::array();
  for (std::size_t i = 0; i < tensors.size() && i < charts::kBarsDrawn; ++i) {
    const UpdateCounts& counts = tensors[i]->updates->table.counts;
    const UpdateOutcomes& half = counts.half;
    const std::pair<const char*, std::uint64_t> outcomes[] = {{"underflow", half.underflow},
                                                              {"swamped", half.swamped},
                                                              {"applied", half.applied},
                                                              {"exact", half.exact},
                                                              {"overflow", half.overflow}};
    int order = 0;
    for (const auto& [outcome, count] : outcomes) {
      out.push_back({log::printable(tensors[i]->name), outcome, order++, count, counts.updates()});
    }
  }
  return out;
}

void put_updates(const Analysis& analysis, json& to) {
  const answer::UpdateSum all = answer::all_updates(analysis);
  if (all.weights == 0) return;
  const charts::UpdateWindow window = charts::update_window(all.table, analysis.target);
  to["update-map"] = own_chart({"w", "u", "count", "lost"},
                               charts::update_map_parameters(window, analysis.target));
  to["update-ratios"] =
      own_chart({"e", "count", "lost"}, charts::ratio_parameters(analysis.target));
  to["update-errors"] = own_chart({"e", "count"});
  to["outcomes"] = own_chart({"name", "outcome", "order", "count", "of"});
  for (std::size_t log = 0; log < analysis.logs.size(); ++log) {
    const answer::Tensors tensors = answer::with_updates(answer::of_log(analysis.logs[log]));
    if (tensors.empty()) continue;
    const std::string at = std::to_string(log);
    const auto put = [&](const std::string& key, const UpdateTable& table) {
      to["update-map"]["rows"][at][key] = cell_rows(table);
      to["update-ratios"]["rows"][at][key] = ratio_rows(table);
      to["update-errors"]["rows"][at][key] = error_rows(table);
    };
    put("all", answer::sum_updates(tensors).table);
    for (std::size_t i = 0; i < tensors.size() && i < charts::kWeightsDrawn; ++i) {
      put(std::to_string(analysis.tensors().index_of(*tensors[i])), tensors[i]->updates->table);
    }
    to["outcomes"]["rows"][at]["all"] = outcome_rows(tensors);
  }
}

/// Returns the headroom below overflow at each step, at the scale of answer::headroom_to_use().
json trend_rows(const Study& study, const TensorFindings& tensor) {
  json out = json::array();
  const double overflow = std::log2(to_double(study.analysis.target.boundaries(1, 1).overflow));
  const double limit = overflow - (tensor.loss_scaled ? study.advice.static_log2.value_or(0) : 0);
  for (const analyzers::underflow::StepFindings& step : tensor.per_step) {
    if (!step.max_abs || *step.max_abs <= 0) continue;
    out.push_back({log::printable(tensor.name), step.step, limit - std::log2(*step.max_abs)});
  }
  return out;
}

void put_rooms(const Study& study, json& to) {
  const Analysis& analysis = study.analysis;
  const std::vector<answer::HeadroomToUse> all = answer::headroom_to_use(study);
  if (all.empty()) return;
  to["rooms"] = own_chart({"name", "room", "step", "last"});
  to["trends"] = own_chart({"name", "step", "room"});
  for (std::size_t log = 0; log < analysis.logs.size(); ++log) {
    json rooms = json::array(), trends = json::array();
    std::size_t lines = 0;
    for (const answer::HeadroomToUse& room : all) {
      const analyzers::overflow::Headroom& h = *room.headroom;
      const TensorFindings& tensor = analysis.tensors()[h.tensor];
      if (*tensor.log != analysis.logs[log].name) continue;
      if (rooms.size() < charts::kRoomsDrawn) {
        rooms.push_back({log::printable(tensor.name), room.least, h.least_at, room.last});
      }
      if (lines < charts::kLinesDrawn && tensor.per_step.size() > 1) {
        const json rows = trend_rows(study, tensor);
        trends.insert(trends.end(), rows.begin(), rows.end());
        ++lines;
      }
    }
    to["rooms"]["rows"][std::to_string(log)]["all"] = std::move(rooms);
    to["trends"]["rows"][std::to_string(log)]["all"] = std::move(trends);
  }
}

/// Returns [role, format, order, as it is, with a scale] for each role and format that occur.
json fit_rows(const analyzers::underflow::LogFindings& log) {
  std::map<std::pair<log::Role, std::pair<int, std::string>>, std::array<std::uint64_t, 2>> sums;
  for (const TensorFindings* tensor : answer::of_log(log)) {
    if (tensor->whole->fits.empty() || tensor->counts.finite_nonzero.high == 0) continue;
    const auto narrowest = tensor->whole->narrowest;
    const NamedFormat* format = narrowest ? find_format(narrowest->format) : nullptr;
    std::pair<int, std::string> name = {format ? format->format.width : 100,
                                        format ? answer::people_say(format->name) : "none"};
    const bool nonfinite = answer::holds_nonfinite(*tensor);
    if (nonfinite) name = {200, "holds NaN or infinity"};
    const bool scaled = !nonfinite && narrowest && narrowest->needs_scale;
    ++sums[{tensor->role, name}][scaled ? 1 : 0];
  }
  json out = json::array();
  for (const auto& [at, counts] : sums) {
    out.push_back({name_of(at.first), at.second.second, at.second.first, counts[0], counts[1]});
  }
  return out;
}

void put_fits(const Analysis& analysis, json& to) {
  if (answer::fit_sums(analysis).tensors == 0) return;
  to["fits"] = own_chart({"role", "format", "order", "as_is", "scaled"});
  for (std::size_t log = 0; log < analysis.logs.size(); ++log) {
    to["fits"]["rows"][std::to_string(log)]["all"] = fit_rows(analysis.logs[log]);
  }
}

/// Draws the kRoomsDrawn layers that are farthest below normal numbers.
void put_recipes(const Analysis& analysis, json& to) {
  std::vector<answer::Operand> all = answer::operands(analysis);
  if (all.empty()) return;
  to["recipes"] = own_chart({"name", "product", "recipe", "db", "normal", "zero", "clipped"});
  std::ranges::stable_sort(all, std::ranges::greater{}, &answer::Operand::below_normal);
  for (std::size_t log = 0; log < analysis.logs.size(); ++log) {
    std::vector<std::string> names;
    json rows = json::array();
    for (const answer::Operand& operand : all) {
      if (*operand.tensor->log != analysis.logs[log].name || std::isinf(operand.db())) continue;
      const std::string name = log::printable(operand.tensor->name);
      if (std::ranges::find(names, name) == names.end()) {
        if (names.size() == charts::kRoomsDrawn) continue;
        names.push_back(name);
      }
      const auto& fit = *operand.fit;
      rows.push_back({name, operand.product(), fit.asked, operand.db(), fit.normal_db,
                      answer::share_text(fit.flushed_to_zero, fit.values),
                      answer::share_text(fit.saturated, fit.values)});
    }
    to["recipes"]["rows"][std::to_string(log)]["all"] = std::move(rows);
  }
}

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

void put_timeline_chart(const analyzers::Findings& found, json& to) {
  const std::map<std::size_t, json> all = rows_of(found);
  if (all.empty()) return;
  to["timeline"] = own_chart({"step", "scale", "log2", "skipped"});
  for (const auto& [log, rows] : all) to["timeline"]["rows"][std::to_string(log)]["all"] = rows;
}

}  // namespace

json own_chart(json fields, json parameters) {
  return {{"fields", std::move(fields)},
          {"parameters", std::move(parameters)},
          {"rows", json::object()}};
}

json own_charts_json(const Study& study) {
  json out = json::object();
  put_updates(study.analysis, out);
  put_rooms(study, out);
  put_fits(study.analysis, out);
  put_recipes(study.analysis, out);
  put_policy_charts(study, out);
  put_timeline_chart(study, out);
  put_quantised_chart(study, out);
  put_rank_charts(study, out);
  return out;
}

bool draws_timeline(const analyzers::Findings& found) { return !rows_of(found).empty(); }

}  // namespace halfscope::reports::page
