// SPDX-License-Identifier: Apache-2.0
// Statistics of a recommendation: evidence by scale, skipped steps, lost mass, ranks.
#include "reports/answer/skip_words.hpp"
#include "reports/export/json.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {
namespace {

using namespace analyzers;

/// Returns a number, or [low, high] if only bounds are known.
Json bounds_json(const Bounds& b) {
  return b.low == b.high ? number_json(b.low)
                         : Json::array({number_json(b.low), number_json(b.high)});
}

Json skip_json(const recommend::SkipBound& bound) {
  Json to = {
      {"method", "binomial"},
      {"steps", bound.steps},
      {"exceedances", to_json(Interval(bound.exceedances, bound.exceedances + bound.perhaps))},
      {"probability", number_json(bound.probability)},
      {"interval", Json::array({number_json(bound.low), number_json(bound.high)})},
      {"confidence", bound.kConfidence}};
  if (bound.unread != 0) to["unread_steps"] = bound.unread;
  return to;
}

Json scale_json(const recommend::ScaleEvidence& scale) {
  Json to = {{"log2_scale", scale.log2_scale},
             {"flushed_to_zero", to_json(scale.flushed)},
             {"of", to_json(scale.of)},
             {"lost_mass", mass_json(scale.lost)}};
  if (scale.skip.steps == 0) return to;
  to["overflow_steps"] = to_json(scale.overflow_steps);
  to["skip"] = skip_json(scale.skip);
  return to;
}

Json dynamic_json(const recommend::DynamicAdvice& dynamic) {
  Json to = {{"policy", policy::info_of(dynamic.policy).name},
             {"init", number_json(dynamic.init)},
             {"growth_interval", dynamic.growth_interval}};
  if (dynamic.replayed) {
    const recommend::SkipBound& found = *dynamic.replayed;
    const auto share = [&](std::uint64_t skipped) {
      return static_cast<double>(skipped) / static_cast<double>(found.steps);
    };
    if (found.steps != 0) {
      to["expected_skip_rate"] =
          found.perhaps == 0
              ? Json(share(found.exceedances))
              : Json::array({share(found.exceedances), share(found.exceedances + found.perhaps)});
    }
    to["expected_skip_interval"] = Json::array({found.low, found.high});
    if (found.unread != 0) to["unread_steps"] = found.unread;
  }
  to["why"] = answer::why_settings_text(dynamic);
  return to;
}

Json ranks_json(const recommend::RankSum& ranks) {
  return {{"ranks", ranks.ranks},
          {"of", to_json(ranks.of)},
          {"flushed_undivided", to_json(ranks.flushed_alone)},
          {"flushed_divided_before", to_json(ranks.flushed_before)},
          {"headroom_divided_after", number_json(ranks.headroom_after)},
          {"highest_divided_after", power_json(ranks.highest_after_log2)}};
}

}  // namespace

Json mass_json(const MassShare& lost) {
  return {{"l1", bounds_json(lost.l1)}, {"l2", bounds_json(lost.l2)}};
}

void put_advice(Json& to, const recommend::Recommendation& advice) {
  if (advice.lost_at_1 && advice.lost_at_recommended) {
    to["lost_mass"] = {{"at_1", mass_json(*advice.lost_at_1)},
                       {"at_recommended", mass_json(*advice.lost_at_recommended)}};
  }
  if (advice.nan_in_model) {
    const recommend::NanInModel& first = *advice.nan_in_model;
    to["nan_in_model"] = {{"tensor", first.tensor}, {"step", first.step}};
    if (advice.logs.size() > 1) to["nan_in_model"]["log"] = first.log;
  }
  if (advice.may_use && advice.may_use->why != recommend::MayUse::Why::no_scale) {
    to["may_use"] = {{"fits", advice.may_use->yes()}, {"decided_by", advice.may_use->tensor}};
  }
  if (advice.skip) to["skip"] = skip_json(*advice.skip);
  if (advice.steps_left_out != 0) to["steps_left_out"] = advice.steps_left_out;
  if (advice.static_log2) {
    to["none_needed"] = advice.none_needed;
    if (advice.overflow_not_identifiable) to["overflow_not_identifiable"] = true;
    if (advice.clipped) to["clipped"] = true;
    if (advice.incomplete_steps != 0) to["incomplete_steps"] = advice.incomplete_steps;
    if (advice.unread.lacking != 0) {
      to["unread"] = {{"role", log::name_of(advice.unread.role)},
                      {"steps", advice.unread.lacking},
                      {"of", advice.unread.of}};
    }
  }
  for (const recommend::ScaleEvidence& scale : advice.scales) {
    to["scales"].push_back(scale_json(scale));
  }
  if (!advice.dynamic.empty()) to["dynamic"] = dynamic_json(advice.dynamic.front());
  if (advice.ranks) to["ranks"] = ranks_json(*advice.ranks);
}

}  // namespace halfscope::reports::exports
