// SPDX-License-Identifier: Apache-2.0
// Replays of loss-scaling policies as JSON. Fields: docs/json.md; schema:
// docs/schema/policies.schema.json.
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "reports/answer/policy_paste.hpp"
#include "reports/export/json.hpp"
#include "reports/export/json_parts.hpp"
#include "reports/export/pieces.hpp"
#include "reports/export/tree.hpp"

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

/// Adds one scale per step. Out, here and below, is Pieces for text or Tree for values.
template <class Out>
void add_scales(Out& to, const replay::ScaleRuns& runs, std::size_t length) {
  for (std::size_t r = 0; r < runs.size(); ++r) {
    const std::size_t end = r + 1 < runs.size() ? runs[r + 1].first : length;
    to.repeat(number_json(runs[r].second), end - runs[r].first);
  }
}

template <class Out>
void add_steps(Out& to, std::string_view name, const std::vector<std::int64_t>& steps) {
  to.array(name, [&] {
    for (const std::int64_t step : steps) to.element(step);
  });
}

template <class Out>
void add_attempts(Out& to, const Trace& trace) {
  to.array("attempts", [&] {
    std::size_t at = 0;
    for (const auto& [step, attempts] : trace.attempts) {
      if (step >= trace.length) break;
      to.repeat(1, step - at);
      to.element(attempts);
      at = step + 1;
    }
    to.repeat(1, trace.length - at);
  });
}

template <class Out>
void add_parts(Out& to, const Trace& trace) {
  if (trace.parts.empty()) return;
  to.array("parts", [&] {
    for (const auto& part : trace.parts) {
      to.open_element({{"name", part.first}});
      to.array("scale", [&] { add_scales(to, part.second, trace.length); });
      to.close();
    }
  });
}

void put_flushed(Json& to, const Trace& trace) {
  if (!trace.mean_flushed) return;
  to["mean_flushed_share"] = *trace.mean_flushed;
  to["worst_flushed_share"] = *trace.worst_flushed;
  to["worst_flushed_step"] = trace.worst_step;
}

/// Adds the results after the last step. The last scale is null if it is infinite (a policy that
/// diverges): JSON has no infinity.
void put_end(Json& to, const Trace& trace) {
  to["final"] = number_json(trace.final_scale);
  if (std::isinf(trace.final_scale)) to["final_text"] = "inf";
  if (std::isnan(trace.final_scale)) to["final_text"] = "nan";
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
  for (const replay::Pitfall& pitfall : study.pitfalls) {
    if (pitfall.policy != trace.name) continue;
    to["traps"].push_back({{"id", name_of(pitfall.kind)}, {"text", pitfall.text()}});
    if (pitfall.step) to["traps"].back()["step"] = *pitfall.step;
  }
  if (study.tuned && study.tuned->name == trace.name) {
    to["tuned"] = tuned_json(*study.tuned, framework);
  }
  if (trace.name == "recorded" && study.check) to["replay"] = check_json(*study.check);
}

template <class Out>
void add_trace(Out& to, const Trace& trace, const PolicyStudy& study, std::string_view framework) {
  Json about = {{"policy", trace.name}};
  if (!study.series.from_magnitudes) about["log"] = study.series.log;
  if (trace.name != "recorded") about["settings"] = settings_json(trace.policy);
  if (!trace.unavailable.empty()) {
    about["unavailable"] = trace.unavailable;
    to.open(about);
    to.close();
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
  to.close();
}

/// Calls entry(trace, study) for each trace, in the order of the array.
template <class Entry>
void for_each_trace(const std::vector<PolicyStudy>& studies, const TracesOptions& options,
                    const Entry& entry) {
  for (const PolicyStudy& study : studies) {
    for (const Trace& trace : study.traces) entry(trace, study);
    if (options.with_recorded && study.recorded) entry(*study.recorded, study);
  }
}

}  // namespace

void write_traces(const std::vector<PolicyStudy>& studies, const TracesOptions& options,
                  const WriteText& write) {
  Pieces to(write);
  const char* before = "\n";
  to.add("[");
  for_each_trace(studies, options, [&](const Trace& trace, const PolicyStudy& study) {
    to.add(before);
    before = ",\n";
    add_trace(to, trace, study, options.framework);
  });
  to.add("\n]\n");
  to.flush();
}

void each_trace(const std::vector<PolicyStudy>& studies, const TracesOptions& options,
                const TakeJson& take) {
  for_each_trace(studies, options, [&](const Trace& trace, const PolicyStudy& study) {
    Tree to;
    add_trace(to, trace, study, options.framework);
    take(std::move(to.take().front()));
  });
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
