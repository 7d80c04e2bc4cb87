// SPDX-License-Identifier: Apache-2.0
// Replays of loss-scaling policies, as JSON. Fields: docs/json.md; schema:
// docs/schema/policies.schema.json.
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <string_view>

#include "reports/answer/policy_names.hpp"
#include "reports/answer/policy_paste.hpp"
#include "reports/export/json.hpp"
#include "reports/export/json_parts.hpp"
#include "reports/export/json_policies.hpp"
#include "reports/export/pieces.hpp"

namespace halfscope::reports::exports {

using analyzers::replay::PolicyStudy;
using analyzers::replay::Trace;

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
void add_scales(Pieces& to, const replay::ScaleRuns& runs, std::size_t length) {
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const std::size_t end = r + 1 < runs.size() ? runs[r + 1].first : length;
    const std::string text = json_text(number_json(runs[r].second));
    for (std::size_t i = runs[r].first; i < end; ++i) to.add_element(text);
  }
}

void add_steps(Pieces& to, std::string_view name, const std::vector<std::int64_t>& steps) {
  to.array(name, [&] {
    for (const std::int64_t step : steps) to.add_element(fmt::format_int(step).c_str());
  });
}

void add_attempts(Pieces& to, const Trace& trace) {
  to.array("attempts", [&] {
    auto next = trace.attempts.begin();
    for (std::size_t i = 0; i < trace.length; ++i) {
      const bool several = next != trace.attempts.end() && next->first == i;
      to.add_element(several ? fmt::format_int(next->second).c_str() : "1");
      if (several) ++next;
    }
  });
}

void add_parts(Pieces& to, const Trace& trace) {
  const char* before = ",\"parts\":[";
  for (const auto& part : trace.parts) {
    to.add(before + ("{\"name\":" + json_text(part.first)));
    to.array("scale", [&] { add_scales(to, part.second, trace.length); });
    to.add("}");
    before = ",";
  }
  if (!trace.parts.empty()) to.add("]");
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

void put_end(Json& to, const Trace& trace) {
  put_final(to, trace.final_scale);
  to["error"] = trace.error ? Json{{"message", trace.error->message}, {"step", trace.error->step}}
                            : Json(nullptr);
  to["fate"] = replay::name_of(trace.outcome);
  to["skipped_in_model"] = trace.model_nan_skips;
  to["lost_share"] = trace.lost_share();
  put_flushed(to, trace);
}

Json tuned_json(const replay::TunedPolicy& tuned, std::string_view framework) {
  Json to = {{"policy", tuned.name},
             {"text", tuned.text},
             {"settings", settings_json(tuned.trace.policy)},
             {"skipped", tuned.trace.skipped.size()},
             {"kept", tuned.kept},
             {"within_target", tuned.within_target},
             {"tried", tuned.tried}};
  const auto paste = answer::paste_of(tuned.trace.policy, answer::policy_name_in(framework));
  if (paste) to["paste"] = {{"where", paste->where}, {"lines", paste->lines}};
  if (paste && !paste->note.empty()) to["paste"]["note"] = paste->note;
  if (!tuned.stopped_by.empty()) to["stopped_by"] = tuned.stopped_by;
  put_flushed(to, tuned.trace);
  return to;
}

Json check_json(const replay::RunCheck& check) {
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

void put_advice(Json& to, const Trace& trace, const PolicyStudy& study,
                std::string_view framework) {
  Json found = Json::array();
  for (const replay::Pitfall& pitfall : study.pitfalls) {
    if (pitfall.policy != trace.name) continue;
    found.push_back({{"id", name_of(pitfall.kind)}, {"text", pitfall.text()}});
    if (pitfall.step) found.back()["step"] = *pitfall.step;
  }
  if (!found.empty()) to["traps"] = found;
  if (study.tuned && study.tuned->name == trace.name) {
    to["tuned"] = tuned_json(*study.tuned, framework);
  }
  if (trace.name == "recorded" && study.check) to["replay"] = check_json(*study.check);
}

void add_trace(Pieces& to, const Trace& trace, const PolicyStudy& study,
               std::string_view framework) {
  Json about = {{"policy", trace.name}};
  if (!study.series.from_magnitudes) about["log"] = study.series.log;
  if (trace.name != "recorded") about["settings"] = settings_json(trace.policy);
  if (!trace.unavailable.empty()) {
    about["unavailable"] = trace.unavailable;
    to.add(json_text(about));
    return;
  }
  if (!study.series.steps.empty()) about["first_step"] = study.series.steps.front();
  to.open(about);
  to.array("scale", [&] { add_scales(to, trace.scale, trace.length); });
  add_steps(to, "skipped", trace.skipped);
  add_steps(to, "overflow", trace.overflow);
  add_steps(to, "unknown", trace.unknown);
  add_steps(to, "applied_nonfinite", trace.applied_nonfinite);
  add_attempts(to, trace);
  Json end;
  put_end(end, trace);
  to.fields(end);
  add_parts(to, trace);
  Json advice = Json::object();
  put_advice(advice, trace, study, framework);
  to.fields(advice);
  to.add("}");
}

}  // namespace

void write_traces(const std::vector<PolicyStudy>& studies, const TracesOptions& options,
                  const WriteText& write) {
  Pieces to(write);
  const char* before = "\n";
  const auto entry = [&](const Trace& trace, const PolicyStudy& study) {
    to.add(before);
    before = ",\n";
    add_trace(to, trace, study, options.framework);
  };
  to.add("[");
  for (const PolicyStudy& study : studies) {
    for (const Trace& trace : study.traces) entry(trace, study);
    if (options.with_recorded && study.recorded) entry(*study.recorded, study);
  }
  to.add("\n]\n");
  to.flush();
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

}  // namespace halfscope::reports::exports
