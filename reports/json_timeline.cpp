// SPDX-License-Identifier: Apache-2.0
// The loss scale's way through another tool's log, as JSON.
#include "analyzers/timeline_facts.hpp"
#include "reports/json_parts.hpp"

namespace halfscope::reports {
namespace {

using analyzers::TimelineFacts;

Json ranges_json(const TimelineFacts& facts) {
  Json ranges = Json::array();
  for (const analyzers::SkippedSteps& range : facts.ranges) {
    Json to = {{"first", range.first}, {"count", range.count}};
    if (range.last) to["last"] = *range.last;
    if (range.scale_from) to["from"] = number_json(range.scale_from);
    if (range.scale_to) to["to"] = number_json(range.scale_to);
    ranges.push_back(std::move(to));
  }
  return ranges;
}

Json changes_json(const TimelineFacts& facts) {
  Json changes = Json::array();
  for (const analyzers::ScaleChange& change : facts.changes) {
    Json to = {{"after", change.after},
               {"from", number_json(change.from)},
               {"to", number_json(change.to)}};
    if (change.by) to["by"] = *change.by;
    changes.push_back(std::move(to));
  }
  return changes;
}

Json driver_json(const analyzers::ScaleDriver& driver) {
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
  for (const analyzers::ScaleFall& fall : facts.falls) {
    Json to = {{"first", fall.first},
               {"from", number_json(fall.from)},
               {"to", number_json(fall.to)},
               {"reductions", fall.reductions}};
    if (fall.last) to["last"] = *fall.last;
    if (fall.driver) to["driver"] = driver_json(*fall.driver);
    falls.push_back(std::move(to));
  }
  return falls;
}

}  // namespace

void put_timeline(Json& to, const analyzers::Analysis& analysis) {
  for (const TimelineFacts& facts : analyzers::timeline_facts(analysis)) {
    Json log = {{"log", facts.log},
                {"kinds", facts.kinds},
                {"steps", facts.steps},
                {"skipped_steps", facts.skipped},
                {"skipped", facts.skipped_in_all},
                {"changes", changes_json(facts)},
                {"falls", falls_json(facts)}};
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

}  // namespace halfscope::reports
