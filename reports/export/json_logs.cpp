// SPDX-License-Identifier: Apache-2.0
// Findings about whole logs as JSON (docs/json.md): the history of the loss scale in another tool's
// log, notes and missing facts, factors that can be moved between layers, bounds of attention
// scores, the comparison of a run's ranks.
#include <algorithm>
#include <cmath>

#include "analyzers/scale_history/timeline_facts.hpp"
#include "reports/answer/gaps.hpp"
#include "reports/export/json.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {

using namespace analyzers;
using ranks::RankComparison;
using ranks::RankValues;
using scale_history::Quantity;
using scale_history::TimelineFacts;

namespace {

Json range_json(const frames::SkippedSteps& range) {
  Json to = {{"first", range.first}, {"count", to_json(range.count)}};
  if (range.last) to["last"] = *range.last;
  if (range.scale_from) to["from"] = number_json(range.scale_from);
  if (range.scale_to) to["to"] = number_json(range.scale_to);
  return to;
}

Json change_json(const scale_history::ScaleChange& change) {
  Json to = {
      {"after", change.after}, {"from", number_json(change.from)}, {"to", number_json(change.to)}};
  if (change.by) to["by"] = *change.by;
  return to;
}

Json driver_json(const scale_history::ScaleDriver& driver) {
  Json to = {{"tensor", driver.tensor},
             {"role", log::name_of(driver.role)},
             {"step", driver.step},
             {"max_abs", number_json(driver.max_abs)}};
  if (driver.also > 0) to["also_not_finite"] = driver.also;
  if (driver.before) to["before"] = true;
  return to;
}

Json fall_json(const scale_history::ScaleFall& fall) {
  Json to = {{"first", fall.after},
             {"from", number_json(fall.from)},
             {"to", number_json(fall.to)},
             {"reductions", fall.reductions}};
  if (fall.by) to["last"] = *fall.by;
  if (fall.driver) to["driver"] = driver_json(*fall.driver);
  return to;
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

Json nonfinite_json(const scale_history::Nonfinite& found) {
  return {{"of", name_of(found.of)},
          {"first", found.first},
          {"last", found.last},
          {"count", found.count},
          {"at_skips", found.at_skips}};
}

/// Adds the NaN and infinities of its scalars, and the way its lines were read.
void put_nonfinite(Json& to, const TimelineFacts& facts) {
  for (const auto& found : facts.nonfinite) to["nonfinite"].push_back(nonfinite_json(found));
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
  for (const frames::OtherScaler& other : facts.other_scalers) {
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

Json shift_json(const overflow::LayerShift& shift) {
  Json to = {{"log", shift.log},
             {"activation", shift.activation},
             {"max_abs", number_json(shift.max_abs)},
             {"layer", shift.layer},
             {"next", shift.next},
             {"log2", shift.log2},
             {"next_max_abs", number_json(shift.next_max_abs)},
             {"flushed_to_zero", to_json(shift.flushed)},
             {"subnormal", to_json(shift.subnormal)},
             {"of", to_json(shift.of)},
             {"in_sequence", shift.in_sequence}};
  if (shift.censored) to["censored"] = true;
  if (!shift.between.empty()) to["between"] = shift.between;
  return to;
}

Json scores_json(const overflow::AttentionScores& scores) {
  Json to = {{"log", scores.log},
             {"query", scores.query},
             {"key", scores.key},
             {"step", scores.step},
             {"query_norm", number_json(scores.query_norm)},
             {"key_norm", number_json(scores.key_norm)},
             {"width", scores.width},
             {"at_most", number_json(scores.at_most())},
             {"can_overflow", scores.can_overflow}};
  if (scores.by_head) to["head_at_most"] = overflow::kLargestHead;
  if (scores.can_overflow) to["enough_head"] = scores.enough_head;
  return to;
}

Json reasons_json(const RankValues& rank) {
  Json reasons = Json::array();
  if (rank.is_nonfinite) reasons.push_back("nonfinite");
  if (rank.overflows) reasons.push_back("nonfinite_often");
  if (rank.peaks) reasons.push_back("one_step");
  if (rank.departs) reasons.push_back("most_steps");
  if (rank.underflows) reasons.push_back("underflow");
  return reasons;
}

Json rank_json(const RankValues& rank) {
  Json to = {{"rank", rank.rank}, {"steps", rank.steps}, {"max_abs", number_json(rank.max_abs)}};
  if (rank.max_abs) to["max_abs_step"] = rank.max_step;
  if (rank.skew) to["skew"] = *rank.skew;
  if (rank.peak) {
    to["most_above"] = number_json(rank.peak);
    to["most_above_step"] = rank.peak_step;
    to["median_above"] = number_json(rank.middle);
  }
  if (rank.since) to["far_since"] = *rank.since;
  if (rank.nonfinite) {
    to["nonfinite_since"] = rank.nonfinite->step;
    to["nan"] = rank.nonfinite->nan;
  }
  if (rank.overflow) to["overflow_since"] = *rank.overflow;
  if (rank.nonfinite_steps != 0) to["nonfinite_steps"] = rank.nonfinite_steps;
  if (const auto share = rank.underflow()) to["flushed_share"] = *share;
  if (rank.differs()) to["differs"] = reasons_json(rank);
  return to;
}

Json comparison_json(const std::string& log, const RankComparison& all, bool whole) {
  Json to = {{"log", log}, {"role", log::name_of(all.role)}};
  if (all.stride != 1) to["steps_joined"] = all.stride;
  if (all.parts) to["parts"] = true;
  if (all.median_max_abs) to["median_max_abs"] = number_json(all.median_max_abs);
  if (all.median_underflow) to["median_flushed_share"] = *all.median_underflow;
  const auto put_limit = [&to](const char* name, double limit) {
    if (std::isfinite(limit)) to[name] = limit;
  };
  put_limit("limit_one_step", all.peak_limit);
  put_limit("limit_most_steps", all.middle_limit);
  put_limit("limit_underflow", all.underflow_limit);
  to["worst"] = Json::array();
  for (const std::size_t i : all.worst) to["worst"].push_back(all.ranks[i].rank);
  to["by_rank"] = Json::array();
  for (const RankValues& rank : all.ranks) {
    if (whole || rank.differs()) to["by_rank"].push_back(rank_json(rank));
  }
  return to;
}

}  // namespace

void put_timeline(Json& to, const Findings& found) {
  for (const TimelineFacts& facts : found.timelines) {
    Json log = {{"log", facts.log},
                {"kinds", facts.kinds},
                {"steps", facts.steps},
                {"skipped_steps", facts.skipped},
                {"state", name_of(facts.state)},
                {"changes", list_json(facts.changes, change_json)},
                {"falls", list_json(facts.falls, fall_json)}};
    put_state(log, facts);
    if (facts.numbered) log["numbered"] = true;
    if (facts.first) log["first"] = *facts.first;
    if (facts.last) log["last"] = *facts.last;
    for (const auto& range : facts.ranges) log["skipped_between"].push_back(range_json(range));
    if (facts.scale_first) {
      log["loss_scale"] = {{"first", number_json(facts.scale_first)},
                           {"last", number_json(facts.scale_last)},
                           {"least", number_json(facts.scale_least)},
                           {"most", number_json(facts.scale_most)}};
    }
    to["timeline"].push_back(std::move(log));
  }
}

void put_notes(Json& to, const frames::Notes& notes) {
  for (const std::string& note : notes) to["notes"].push_back(note);
}

void put_gaps(Json& to, const Findings& found) {
  put_notes(to, found.analysis.notes);
  if (const auto& carried = found.carried_scale) {
    to["seems_scaled"] = {{"log", carried->log}, {"steps", carried->steps}, {"of", carried->of}};
  }
  for (const answer::LogGaps& gaps : answer::could_not_tell(found.analysis)) {
    Json names = Json::array();
    std::string text;
    for (const answer::Unknown& unknown : gaps.unknown) {
      names.push_back(answer::name_of(unknown.gap));
      text += (text.empty() ? "" : " ") + unknown.text;
    }
    to["could_not_tell"].push_back(
        {{"log", gaps.log},
         {"kind", gaps.kind},
         {"gaps", names},
         {"text", text},
         {"next_time", {{"where", gaps.recording.where}, {"lines", gaps.recording.lines}}}});
  }
}

void put_layers(Json& to, const Findings& found) {
  for (const auto& shift : found.shifts) to["layer_shifts"].push_back(shift_json(shift));
  for (const auto& scores : found.scores) to["attention_scores"].push_back(scores_json(scores));
}

void put_ranks(Json& to, const Findings& found, bool whole) {
  for (const auto& study : found.ranks) {
    for (const RankComparison& all : study.compared) {
      to["ranks_compared"].push_back(comparison_json(study.log, all, whole));
    }
  }
}

}  // namespace halfscope::reports::exports
