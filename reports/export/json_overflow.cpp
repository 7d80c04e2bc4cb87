// SPDX-License-Identifier: Apache-2.0
// Headroom and overflow events as JSON: docs/json.md.
#include "analyzers/overflow/overflow.hpp"
#include "reports/export/json.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {

using analyzers::overflow::Headroom;

namespace {

using namespace analyzers;

Json lead_json(const overflow::Lead& lead) {
  Json to = {{"name", lead.name}, {"relation", lead.relation}, {"steps", Json::array()}};
  for (const overflow::TensorState& glimpse : lead.glimpses) {
    to["steps"].push_back({{"step", glimpse.step},
                           {"max_abs", number_json(glimpse.max_abs)},
                           {"nan", to_json(glimpse.nan)},
                           {"inf", to_json(glimpse.inf)},
                           {"overflow", to_json(glimpse.overflow)}});
  }
  return to;
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
  to["leads"] = Json::array();
  for (const overflow::Lead& lead : event.leads) to["leads"].push_back(lead_json(lead));
  return to;
}

}  // namespace

Json headroom_json(const Headroom& h) {
  Json to = {{"bits", number_json(h.least)}, {"step", h.least_at}, {"at_scale", h.scale}};
  if (h.censored) to["censored"] = true;
  to["last"] = number_json(h.last);
  if (h.trend) to["trend"] = number_json(h.trend);
  if (h.overflow_expected_at) to["overflow_expected_at"] = *h.overflow_expected_at;
  return to;
}

void put_overflow(Json& to, const underflow::Analysis& analysis,
                  const overflow::OverflowFindings& found) {
  const bool several_logs = analysis.logs.size() > 1;
  to["headroom"] = Json::array();
  for (const Headroom& h : found.headroom) {
    const underflow::TensorFindings& tensor = analysis.tensors()[h.tensor];
    Json entry;
    if (several_logs) entry["log"] = *tensor.log;
    entry["name"] = tensor.name;
    entry.update(headroom_json(h));
    to["headroom"].push_back(std::move(entry));
  }
  to["overflow_events"] = Json::array();
  for (const overflow::OverflowEvent& event : found.events) {
    to["overflow_events"].push_back(event_json(event, several_logs));
  }
}

}  // namespace halfscope::reports::exports
