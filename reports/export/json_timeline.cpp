// SPDX-License-Identifier: Apache-2.0
// The history of the loss scale in another tool's log, as JSON.
#include <algorithm>

#include "analyzers/scale_history/timeline_facts.hpp"
#include "reports/export/json.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {

using analyzers::scale_history::Quantity;

namespace {

using analyzers::scale_history::TimelineFacts;

Json ranges_json(const TimelineFacts& facts) {
  Json ranges = Json::array();
  for (const analyzers::frames::SkippedSteps& range : facts.ranges) {
    Json to = {{"first", range.first}, {"count", to_json(range.count)}};
    if (range.last) to["last"] = *range.last;
    if (range.scale_from) to["from"] = number_json(range.scale_from);
    if (range.scale_to) to["to"] = number_json(range.scale_to);
    ranges.push_back(std::move(to));
  }
  return ranges;
}

Json changes_json(const TimelineFacts& facts) {
  Json changes = Json::array();
  for (const analyzers::scale_history::ScaleChange& change : facts.changes) {
    Json to = {{"after", change.after},
               {"from", number_json(change.from)},
               {"to", number_json(change.to)}};
    if (change.by) to["by"] = *change.by;
    changes.push_back(std::move(to));
  }
  return changes;
}

Json driver_json(const analyzers::scale_history::ScaleDriver& driver) {
  Json to = {{"tensor", driver.tensor},
             {"role", log::name_of(driver.role)},
             {"step", driver.step},
             {"max_abs", number_json(driver.max_abs)}};
  if (driver.also > 0) to["also_not_finite"] = driver.also;
  if (driver.before) to["before"] = true;
  return to;
}

Json falls_json(const TimelineFacts& facts) {
  Json falls = Json::array();
  for (const analyzers::scale_history::ScaleFall& fall : facts.falls) {
    Json to = {{"first", fall.after},
               {"from", number_json(fall.from)},
               {"to", number_json(fall.to)},
               {"reductions", fall.reductions}};
    if (fall.by) to["last"] = *fall.by;
    if (fall.driver) to["driver"] = driver_json(*fall.driver);
    falls.push_back(std::move(to));
  }
  return falls;
}

std::string_view name_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::loss: return "loss";
    case Quantity::gradient_norm: return "gradient_norm";
    case Quantity::evaluation_loss: return "evaluation_loss";
    case Quantity::nan_iterations: break;
  }
  return "nan_iterations";
}

Json nonfinite_json(const TimelineFacts& facts) {
  Json all = Json::array();
  for (const analyzers::scale_history::Nonfinite& found : facts.nonfinite) {
    all.push_back({{"of", name_of(found.of)},
                   {"first", found.first},
                   {"last", found.last},
                   {"count", found.count},
                   {"at_skips", found.at_skips}});
  }
  return all;
}

/// Adds the NaN and infinities of its scalars, and the way its lines were read.
void put_nonfinite(Json& to, const TimelineFacts& facts) {
  if (!facts.nonfinite.empty()) to["nonfinite"] = nonfinite_json(facts);
  if (const auto since = facts.nonfinite_since()) to["nonfinite_since"] = *since;
  if (const auto last = facts.last_finite()) to["last_finite"] = *last;
  if (!facts.remarks.empty()) to["remarks"] = facts.remarks;
  if (facts.nonfinite_line) {
    to["nonfinite_line"] = {{"step", facts.nonfinite_line->step},
                            {"line", facts.nonfinite_line->line}};
  }
  if (facts.loss_missing_since) to["loss_missing_since"] = *facts.loss_missing_since;
  if (const auto& part = facts.bad_loss_part) {
    to["bad_loss_part"] = {
        {"step", part->step}, {"name", part->name}, {"bad", part->bad}, {"of", part->of}};
  }
}

/// Adds the state of the run, and the step since when it has it.
void put_state(Json& to, const TimelineFacts& facts) {
  const Interval skipped = facts.skipped_bounds();
  if (facts.skips_told) to["skipped"] = to_json(skipped);
  if (facts.skips_told && facts.attempts && *facts.attempts > 0) {
    const auto of = static_cast<double>(*facts.attempts);
    const double low = static_cast<double>(skipped.low) / of;
    const double high = std::min(1.0, static_cast<double>(skipped.high) / of);
    to["skipped_share"] = low == high ? Json(low) : Json({low, high});
  }
  if (const auto since = facts.collapsed_since()) to["collapsed_since"] = *since;
  put_nonfinite(to, facts);
  if (facts.in_vain) {
    to["skipped_in_vain"] = {{"first", facts.in_vain->first},
                             {"skipped", to_json(facts.in_vain->count)}};
    if (facts.in_vain->last) to["skipped_in_vain"]["last"] = *facts.in_vain->last;
  }
  if (facts.ended_at_minimum) to["ended_at_minimum"] = true;
  for (const analyzers::frames::OtherScaler& other : facts.other_scalers) {
    Json scaler = {{"scaler", other.scaler}, {"messages", other.messages}};
    if (other.scale_last) scaler["last_scale"] = number_json(other.scale_last);
    to["other_scalers"].push_back(std::move(scaler));
  }
  if (facts.scale_last) to["last_scale"] = number_json(facts.scale_last);
  if (facts.settings) {
    to["settled_at"] = number_json(facts.settings->init);
    if (facts.settings->window) to["growth_window"] = to_json(*facts.settings->window);
  }
  if (facts.jump) {
    to["jump"] = {{"after", facts.jump->after},
                  {"by", *facts.jump->by},
                  {"from", number_json(facts.jump->from)},
                  {"to", number_json(facts.jump->to)},
                  {"times", facts.jump->times}};
    if (facts.jump->lost) to["jump"]["lost"] = to_json(*facts.jump->lost);
  }
  if (facts.ranks.ranks > 1) {
    to["ranks"] = {{"count", facts.ranks.ranks},
                   {"from", facts.ranks.asked ? "option" : "lines"},
                   {"certain", facts.ranks.certain}};
  }
}

}  // namespace

void put_timeline(Json& to, const analyzers::Findings& found) {
  for (const TimelineFacts& facts : found.timelines) {
    Json log = {{"log", facts.log},
                {"kinds", facts.kinds},
                {"steps", facts.steps},
                {"skipped_steps", facts.skipped},
                {"state", name_of(facts.state)},
                {"changes", changes_json(facts)},
                {"falls", falls_json(facts)}};
    put_state(log, facts);
    if (facts.numbered) log["numbered"] = true;
    if (facts.first) log["first"] = *facts.first;
    if (facts.last) log["last"] = *facts.last;
    if (!facts.ranges.empty()) log["skipped_between"] = ranges_json(facts);
    if (facts.scale_first) {
      log["loss_scale"] = {{"first", number_json(facts.scale_first)},
                           {"last", number_json(facts.scale_last)},
                           {"least", number_json(facts.scale_least)},
                           {"most", number_json(facts.scale_most)}};
    }
    to["timeline"].push_back(std::move(log));
  }
}

}  // namespace halfscope::reports::exports
