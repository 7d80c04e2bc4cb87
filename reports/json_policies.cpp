// SPDX-License-Identifier: Apache-2.0
// Replays of loss-scaling policies, as JSON. Fields: docs/json.md; schema:
// docs/schema/policies.schema.json.
#include <cmath>

#include "reports/json_parts.hpp"
#include "reports/json_policies.hpp"

namespace halfscope::reports {
namespace {

using namespace analyzers;

Json value_json(const policy::Value& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  if (const auto* count = std::get_if<std::int64_t>(&value)) return *count;
  if (const auto* word = std::get_if<std::string_view>(&value)) return *word;
  if (const auto* number = std::get_if<double>(&value)) return *number;
  return nullptr;
}

Json settings_json(const policy::Policy& policy) {
  Json to = Json::object();
  for (const auto& [name, value] : policy::settings_of(policy)) {
    to[std::string(name)] = value_json(value);
  }
  return to;
}

/// One number a step.
Json steps_json(const ScaleRuns& runs, std::size_t length) {
  Json to = Json::array();
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const std::size_t end = r + 1 < runs.size() ? runs[r + 1].first : length;
    for (std::size_t i = runs[r].first; i < end; ++i) to.push_back(number_json(runs[r].second));
  }
  return to;
}

Json attempts_json(const Trace& trace) {
  Json to = std::vector<std::uint32_t>(trace.length, 1);
  for (const auto& [index, attempts] : trace.attempts) to[index] = attempts;
  return to;
}

Json parts_json(const Trace& trace) {
  Json to = Json::array();
  for (const auto& [name, runs] : trace.parts) {
    to.push_back({{"name", name}, {"scale", steps_json(runs, trace.length)}});
  }
  return to;
}

void put_flushed(Json& to, const Trace& trace) {
  if (!trace.mean_flushed) return;
  const auto& [mean_low, mean_high] = *trace.mean_flushed;
  const auto& [worst_low, worst_high] = *trace.worst_flushed;
  to["mean_flushed_share"] = {mean_low, mean_high};
  to["worst_flushed_share"] = {worst_low, worst_high};
  to["worst_flushed_step"] = trace.worst_step;
}

/// What policies that run away leave: infinity has no JSON number.
void put_final(Json& to, double scale) {
  to["final"] = number_json(scale);
  if (std::isinf(scale)) to["final_text"] = "inf";
  if (std::isnan(scale)) to["final_text"] = "nan";
}

void put_trace(Json& to, const Trace& trace) {
  to["scale"] = steps_json(trace.scale, trace.length);
  to["skipped"] = trace.skipped;
  to["overflow"] = trace.overflow;
  to["unknown"] = trace.unknown;
  to["applied_nonfinite"] = trace.applied_nonfinite;
  to["attempts"] = attempts_json(trace);
  put_final(to, trace.final_scale);
  to["error"] = trace.error ? Json{{"message", trace.error->message}, {"step", trace.error->step}}
                            : Json(nullptr);
  to["fate"] = name_of(trace.fate);
  to["skipped_in_model"] = trace.model_nan_skips;
  to["lost_share"] = trace.lost_share();
  put_flushed(to, trace);
  if (!trace.parts.empty()) to["parts"] = parts_json(trace);
}

Json tuned_json(const TunedPolicy& tuned) {
  Json to = {{"policy", tuned.name},
             {"text", tuned.text},
             {"settings", settings_json(tuned.trace.policy)},
             {"skipped", tuned.trace.skipped.size()},
             {"within_target", tuned.within_target},
             {"tried", tuned.tried}};
  put_flushed(to, tuned.trace);
  return to;
}

Json check_json(const RunCheck& check) {
  Json to = {{"policy", check.text}, {"steps", check.steps}, {"equal", !check.first_difference}};
  if (const auto& d = check.first_difference) {
    to["first_difference"] = {{"step", d->step},
                              {"replayed_scale", number_json(d->replayed_scale)},
                              {"recorded_scale", number_json(d->recorded_scale)},
                              {"replayed_skip", d->replayed_skip},
                              {"recorded_skip", d->recorded_skip}};
  }
  return to;
}

}  // namespace

Json trace_json(const Trace& trace, const PolicyStudy& study) {
  Json to = {{"policy", trace.name}};
  if (!study.series.from_magnitudes) to["log"] = study.series.log;
  if (trace.name != "recorded") to["settings"] = settings_json(trace.policy);
  if (!trace.unavailable.empty()) {
    to["unavailable"] = trace.unavailable;
    return to;
  }
  if (!study.series.steps.empty()) to["first_step"] = study.series.steps.front();
  put_trace(to, trace);
  Json found = Json::array();
  for (const Trap& trap : study.traps) {
    if (trap.policy != trace.name) continue;
    found.push_back({{"id", trap.id}, {"text", trap.text}});
    if (trap.step) found.back()["step"] = *trap.step;
  }
  if (!found.empty()) to["traps"] = found;
  if (study.tuned && study.tuned->name == trace.name) to["tuned"] = tuned_json(*study.tuned);
  if (trace.name == "recorded" && study.check) to["replay"] = check_json(*study.check);
  return to;
}

Json catalogue_json() {
  Json to = Json::array();
  for (const policy::Policy& p : policy::all()) {
    const policy::Info& info = policy::info_of(p);
    Json row = {
        {"policy", info.name},
        {"framework", info.framework},
        {"defaults", settings_json(p)},
        {"arithmetic", info.arithmetic == policy::Arithmetic::binary32 ? "binary32" : "binary64"},
        {"source", info.source}};
    if (!info.quirk.empty()) row["quirk"] = info.quirk;
    to.push_back(std::move(row));
  }
  return to;
}

}  // namespace halfscope::reports
