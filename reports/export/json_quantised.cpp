// SPDX-License-Identifier: Apache-2.0
// Losses in FP8 or FP4 as JSON.
#include <fmt/format.h>

#include "analyzers/formats/quantised.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {
namespace {

using analyzers::formats::AtStep;
using analyzers::formats::kUnderflowLimits;
using analyzers::formats::LayerLoss;
using analyzers::formats::QuantisedColumn;
using analyzers::formats::QuantisedLog;
using analyzers::formats::QuantisedTensor;
using analyzers::formats::QuantisedUnderflow;
using analyzers::formats::UnderflowCell;

Json bounds_json(const AtStep& value) { return Json::array({value.low, value.high}); }

/// Returns an object with a field for each limit: "0.005", "0.01", ...
template <typename Value>
Json by_limit(const Value& value_at) {
  Json to = Json::object();
  for (std::size_t i = 0; i < kUnderflowLimits.size(); ++i) {
    const Json value = value_at(i);
    if (!value.is_null()) to[fmt::format("{}", kUnderflowLimits[i])] = value;
  }
  return to;
}

Json underflow_json(const QuantisedUnderflow& u, bool whole) {
  Json to;
  to["largest"] = bounds_json(u.largest);
  to["largest_step"] = u.largest.step;
  if (u.first_steps > 0) to["first_steps"] = u.first_steps;
  to["median"] = Json::array({u.median_low, u.median_high});
  to["last"] = bounds_json(u.last);
  to["last_step"] = u.last.step;
  to["steps"] = u.steps;
  to["steps_above"] = by_limit([&](std::size_t i) { return Json(u.steps_above[i]); });
  to["above_since"] =
      by_limit([&](std::size_t i) { return u.since[i] ? Json(*u.since[i]) : Json(nullptr); });
  if (!whole) return to;
  to["columns"] = list_json(u.cells, [](const UnderflowCell& cell) {
    return Json::array({cell.column, cell.share});
  });
  return to;
}

Json tensor_json(const QuantisedTensor& tensor, bool whole) {
  Json to;
  to["name"] = tensor.name();
  to["layer"] = tensor.layer;
  if (!tensor.tensor.empty()) to["tensor"] = tensor.tensor;
  to["role"] = log::name_of(tensor.role);
  to["recipe"] = name_of(tensor.recipe);
  if (tensor.columnwise) to["columnwise"] = true;
  to["judged"] = tensor.judged;
  if (tensor.underflow) to["underflow_share"] = underflow_json(*tensor.underflow, whole);
  const auto put = [&](const std::string& name, const std::optional<AtStep>& value) {
    if (!value) return;
    to[name] = bounds_json(*value);
    to[name + "_step"] = value->step;
  };
  put("overflow_share_largest", tensor.overflow);
  put("scale_inv_least", tensor.scale_inv_least);
  put("scale_inv_most", tensor.scale_inv_most);
  put("mse_largest", tensor.mse_largest);
  put("mse_last", tensor.mse_last);
  return to;
}

Json layers_json(const std::vector<const LayerLoss*>& layers) {
  return list_json(layers, [](const LayerLoss* layer) { return layer->layer; });
}

Json log_json(const QuantisedLog& log, bool whole) {
  Json to;
  to["log"] = log.log;
  to["steps"] = log.steps;
  to["layers"] = log.layers.size();
  to["limit"] = kUnderflowLimits[analyzers::formats::kKeepLimit];
  to["keep_in_bf16"] = layers_json(log.to_keep());
  to["briefly_above"] = layers_json(log.briefly());
  to["layers_above"] = by_limit([&](std::size_t i) { return Json(log.lasting_at(i)); });
  if (whole) {
    to["columns"] = list_json(log.columns, [](const QuantisedColumn& column) {
      return Json::array({column.first_step, column.last_step});
    });
  }
  to["tensors"] = list_json(log.tensors, [&](const auto& t) { return tensor_json(t, whole); });
  return to;
}

}  // namespace

void put_quantised(Json& to, const analyzers::Findings& found, bool whole) {
  for (const QuantisedLog& log : found.quantised) to["fp8"].push_back(log_json(log, whole));
}

}  // namespace halfscope::reports::exports
