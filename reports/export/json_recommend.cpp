// SPDX-License-Identifier: Apache-2.0
// The output of `recommend --json`: the scale and its limits, evidence by scale, advice by layer,
// lines to paste, headroom and overflow events, the answer's sentences.
#include "halfscope/version.hpp"
#include "reports/answer/answer.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/scale.hpp"
#include "reports/answer/snippets.hpp"
#include "reports/answer/text.hpp"
#include "reports/export/json.hpp"
#include "reports/export/json_parts.hpp"
#include "reports/export/json_weights.hpp"

namespace halfscope::reports::exports {

using namespace analyzers;

namespace {

/// Returns a number, or [low, high] if only bounds are known.
Json bounds_json(const Bounds& b) {
  return b.low == b.high ? number_json(b.low) : pair_json(b.low, b.high);
}

Json skip_json(const recommend::SkipBound& bound) {
  Json to = {
      {"method", "binomial"},
      {"steps", bound.steps},
      {"exceedances", to_json(Interval(bound.exceedances, bound.exceedances + bound.perhaps))},
      {"probability", number_json(bound.probability)},
      {"interval", pair_json(bound.low, bound.high)},
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
    to["expected_skip_interval"] = pair_json(found.low, found.high);
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

Json layer_json(const recommend::LayerScale& layer) {
  Json to = {{"layer", layer.layer},
             {"lowest", power_json(layer.lowest_log2)},
             {"highest", power_json(layer.highest_log2)},
             {"of", to_json(layer.of)},
             {"flushed_at_static", to_json(layer.flushed_at_static)},
             {"flushed_at_highest", to_json(layer.flushed_at_own)}};
  if (layer.als) to["als"] = number_json(layer.als);
  return to;
}

Json keep_json(const recommend::KeepInFp32& keep, const recommend::Recommendation& advice) {
  Json to = {{"name", keep.name},
             {"kind", answer::name_of(keep.kind)},
             {"why", answer::why_text(keep, advice)}};
  if (keep.highest_log2_without) {
    to["highest_without"] = power_json(keep.highest_log2_without);
    to["binades_gained"] = keep.binades_gained;
  }
  return to;
}

Json footprint_json(const recommend::Footprint& f) {
  Json to = {{"weights", f.weights},
             {"activations", f.activations},
             {"bytes_fp32", f.bytes_fp32},
             {"bytes_fp16", f.bytes_fp16},
             {"bytes_mixed", f.bytes_mixed}};
  to["not_multiples_of_8"] = list_json(f.not_multiples_of_8, [](const auto& odd) -> Json {
    return {{"name", odd.name}, {"shape", odd.shape}, {"why", answer::why_text(odd)}};
  });
  if (f.microbatches > 1) to["microbatches"] = f.microbatches;
  return to;
}

Json lead_json(const overflow::Lead& lead) {
  const auto state_json = [](const overflow::TensorState& state) -> Json {
    return {{"step", state.step},
            {"max_abs", number_json(state.max_abs)},
            {"nan", to_json(state.nan)},
            {"inf", to_json(state.inf)},
            {"overflow", to_json(state.overflow)}};
  };
  return {{"name", lead.name},
          {"relation", lead.relation},
          {"steps", list_json(lead.glimpses, state_json)}};
}

Json event_json(const overflow::OverflowEvent& event, bool several_logs) {
  Json to;
  if (several_logs) to["log"] = event.log;
  to["kind"] = event.what_if ? "what_if" : "recorded";
  to["step"] = event.step;
  to["last_step"] = event.last_step;
  to["tensor"] = event.tensor;
  to["role"] = log::name_of(event.role);
  if (event.from_scalars) {
    to["from_scalars"] = true;
  } else {
    to["nan"] = to_json(event.nan);
    to["inf"] = to_json(event.inf);
    to["overflow"] = to_json(event.overflow);
  }
  if (event.loss_scale) to["loss_scale"] = *event.loss_scale;
  to["cause"] = overflow::name_of(event.cause);
  to["why"] = event.why;
  if (event.safe_log2) to["safe_scale"] = power_json(event.safe_log2);
  if (event.estimated) to["estimated"] = true;
  if (event.growth_probe) to["growth_probe"] = true;
  to["leads"] = list_json(event.leads, lead_json);
  return to;
}

Json share_json(const underflow::Share& share) {
  Json to = {{"count", to_json(share.count)}, {"of", to_json(share.of)}};
  const bool exact = share.low() == share.high();
  to["share"] = exact ? Json(share.low()) : Json::array({share.low(), share.high()});
  return to;
}

Json limit_json(const recommend::Limit& limit, bool several_logs) {
  Json to = {{"name", limit.name}, {"step", limit.step}, {"max_abs", number_json(limit.max_abs)}};
  if (limit.censored) to["censored"] = true;
  if (limit.bounded) to["bounded"] = true;
  if (limit.from_scalars) to["from_scalars"] = true;
  if (limit.skipped_at) to["skipped_at"] = number_json(*limit.skipped_at);
  if (limit.first_step) to["first_step"] = *limit.first_step;
  if (limit.numbered) to["numbered"] = true;
  if (limit.nan_at) to["nan_at"] = number_json(*limit.nan_at);
  if (several_logs) to["log"] = limit.log;
  return to;
}

/// Adds the scale and the limits that decide it.
void put_scale(Json& to, const recommend::Recommendation& r) {
  to["schema"] = kJsonSchema;
  to["halfscope"] = kVersion;
  to["logs"] = r.logs;
  to["format"] = r.format;
  to["static_scale"] = power_json(r.static_log2);
  to["highest"] = power_json(r.highest_log2);
  if (r.highest_if_half_log2) to["highest_if_half"] = power_json(r.highest_if_half_log2);
  to["lowest"] = power_json(r.lowest_log2);
  const std::string reason = answer::reason_json_text(r);
  to["reason"] = reason.empty() ? Json(nullptr) : Json(reason);
  to["roles_found"] = r.roles_found;
  to["nonfinite_steps"] = r.nonfinite_steps;
  if (!r.overflow_without_cure.empty()) to["overflow_without_cure"] = r.overflow_without_cure;
  if (r.limited_by) to["limited_by"] = limit_json(*r.limited_by, r.logs.size() > 1);
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

void put_cures(Json& to, const Study& study) {
  const recommend::Recommendation& advice = study.advice;
  for (const recommend::LayerScale& layer : advice.per_layer)
    to["per_layer"].push_back(layer_json(layer));
  for (const recommend::KeepInFp32& keep : advice.keep_in_fp32) {
    to["keep_in_fp32"].push_back(keep_json(keep, advice));
  }
  if (advice.footprint) to["footprint"] = footprint_json(*advice.footprint);
  for (const answer::Snippet& snippet : answer::snippets(study)) {
    const std::string key(snippet.framework);
    if (!snippet.fixed.lines.empty()) to["snippets"][key] = snippet.fixed.lines;
    if (!snippet.dynamic.lines.empty()) to["dynamic_snippets"][key] = snippet.dynamic.lines;
  }
}

/// Adds the values that become zero at the scale.
void put_underflow(Json& to, const recommend::Recommendation& r) {
  if (r.static_log2 || r.underflow_not_identifiable) {
    to["underflow_not_identifiable"] = r.underflow_not_identifiable;
  }
  if (r.lowest_at_least_log2) to["lowest_at_least"] = power_json(r.lowest_at_least_log2);
  if (r.lowest_if_zeros_log2) to["lowest_if_zeros"] = power_json(r.lowest_if_zeros_log2);
  if (!r.static_log2) return;
  to["above_target"] = r.above_target;
  to["headroom_bits"] = number_json(r.headroom_bits);
  to["flushed_at_1"] = share_json(r.flushed_at_1);
  to["flushed_at_recommended"] = share_json(r.flushed_at_recommended);
}

/// Adds the values lost if each tensor has its own scale; only for a target of 8 bits. The values
/// lost with a single scale are in `flushed_at_recommended`.
void put_own_scales(Json& to, const underflow::Analysis& analysis) {
  const auto each = answer::each_scaled(analysis);
  if (!each) return;
  const auto& [all, gradients] = *each;
  to["own_scales"] = {{"tensors", all.tensors},
                      {"fit", all.fit},
                      {"flushed_to_zero",
                       share_json(underflow::Share{gradients.zero, Interval(gradients.values)})}};
}

void put_overflow(Json& to, const underflow::Analysis& analysis,
                  const overflow::OverflowFindings& found) {
  const bool several_logs = analysis.logs.size() > 1;
  to["headroom"] = list_json(found.headroom, [&](const overflow::Headroom& h) {
    const underflow::TensorFindings& tensor = analysis.tensors()[h.tensor];
    Json entry;
    if (several_logs) entry["log"] = *tensor.log;
    entry["name"] = tensor.name;
    entry.update(headroom_json(h));
    return entry;
  });
  to["overflow_events"] =
      list_json(found.events, [&](const auto& event) { return event_json(event, several_logs); });
}

void put_answer(Json& to, const Study& study) {
  const answer::Answer answer = answer::answer_of(study);
  Json json;
  json["headline"] = answer::plain(answer.headline());
  if (answer.lead) {
    if (!answer.lead->action.empty()) json["action"] = answer::plain(answer.lead->action);
    json["severity"] = answer::name_of(answer.lead->severity);
    json["evidence"] = answer::name_of(answer.lead->evidence);
  }
  if (!answer.scale.empty()) json["scale"] = answer::plain(answer.scale);
  if (const answer::Snippet* const snippet = snippet_of(answer.snippets, study)) {
    json["paste"] = first_lines_of(*snippet, answer).lines;
  }
  if (!answer.clear.empty()) json["clear"] = answer::plain(answer.clear);
  json["findings"] = list_json(answer.findings, [](const answer::Finding& finding) {
    Json entry = {{"severity", answer::name_of(finding.severity)},
                  {"title", answer::plain(finding.title)}};
    if (!finding.action.empty()) entry["action"] = answer::plain(finding.action);
    entry["evidence"] = answer::name_of(finding.evidence);
    return entry;
  });
  to["answer"] = std::move(json);
}

}  // namespace

Json mass_json(const MassShare& lost) {
  return {{"l1", bounds_json(lost.l1)}, {"l2", bounds_json(lost.l2)}};
}

Json headroom_json(const overflow::Headroom& h) {
  Json to = {{"bits", number_json(h.least)}, {"step", h.least_at}, {"at_scale", h.scale}};
  if (h.censored) to["censored"] = true;
  to["last"] = number_json(h.last);
  if (h.trend) to["trend"] = number_json(h.trend);
  if (h.overflow_expected_at) to["overflow_expected_at"] = *h.overflow_expected_at;
  return to;
}

Json to_json(const Study& study) {
  Json to;
  put_scale(to, study.advice);
  put_advice(to, study.advice);
  put_cures(to, study);
  put_underflow(to, study.advice);
  put_own_scales(to, study.analysis);
  put_overflow(to, study.analysis, study.overflow);
  put_adam(to, study);
  put_claims(to, study.claims);
  put_layers(to, study);
  put_quantised(to, study, false);
  put_timeline(to, study);
  put_gaps(to, study);
  put_answer(to, study);
  return to;
}

}  // namespace halfscope::reports::exports
