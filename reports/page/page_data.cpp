// SPDX-License-Identifier: Apache-2.0
#include "reports/page/page_data.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <string>
#include <utility>

#include "halfscope/log/error.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/tensors.hpp"
#include "reports/answer/text.hpp"
#include "reports/charts/charts.hpp"
#include "reports/export/csv.hpp"
#include "reports/export/json.hpp"
#include "reports/page/worst.hpp"

namespace halfscope::reports::page {

using analyzers::underflow::Analysis;
using analyzers::underflow::TensorFindings;
using charts::Window;

using json = nlohmann::ordered_json;

namespace {

json pairs(const std::vector<analyzers::underflow::BinadeCount>& binades) {
  json out = json::array();
  for (const auto& [exponent, count] : binades) {
    out.push_back({exponent, exports::to_json(count)});
  }
  return out;
}

/// Returns a sum over tensors with a tensor's fields in `analyze --json`: one script draws both.
json series_json(const answer::Tensors& tensors, const analyzers::underflow::Target& target) {
  const answer::Series series = answer::sum(tensors);
  const analyzers::underflow::Counts& counts = series.counts;
  json out = {{"total", counts.total},
              {"finite_nonzero", exports::to_json(counts.finite_nonzero)},
              {"binades", pairs(series.binades)},
              {"by_scale", json::array()},
              {"columns", json::array()}};
  int k = analyzers::underflow::kFirstLog2Scale;
  for (const Classes& classes : answer::by_scale(tensors, target)) {
    out["by_scale"].push_back({{"log2_scale", k++},
                               {"flushed_to_zero", exports::to_json(classes.flushed_to_zero)},
                               {"subnormal", exports::to_json(classes.subnormal)},
                               {"normal", exports::to_json(classes.normal)},
                               {"overflow", exports::to_json(classes.overflow)}});
  }
  for (const answer::Column& column : series.columns) {
    out["columns"].push_back({{"step", column.first_step},
                              {"last", column.last_step},
                              {"binades", pairs(column.binades)}});
  }
  return out;
}

/// Returns the series by the log's index, then by "gradients" (all gradients) or a role's name.
json all_series(const Analysis& analysis) {
  json out = json::object();
  for (std::size_t i = 0; i < analysis.logs.size(); ++i) {
    const answer::Tensors tensors = answer::of_log(analysis.logs[i]);
    json& log = out[std::to_string(i)] = json::object();
    log["gradients"] = series_json(answer::counted_of(tensors), analysis.target);
    for (const log::Role role : answer::roles_in(analysis)) {
      log[std::string(name_of(role))] =
          series_json(answer::of_role(tensors, role), analysis.target);
    }
  }
  return out;
}

/// Returns parameters for charts of tensors that a loss scale acts on, of the other tensors, and of
/// all gradients together.
json parameters_json(const Window& scaled, const Window& gradients) {
  return {{"scaled", charts::series_parameters(scaled)},
          {"unscaled", charts::series_parameters(charts::unscaled(scaled))},
          {"gradients", charts::gradient_parameters(gradients)}};
}

/// Returns by tensor the data of exports::to_csv() that `analyze --json` lacks: the step's largest
/// magnitude with the file's digits, and names whose printed form differs.
json csv_json(const answer::Tensors& tensors) {
  json out = {{"max_abs", json::array()}, {"printable", json::array()}};
  const auto put_name = [&](const std::string& name) {
    const std::string field = exports::csv_name(name);
    if (field != name) out["printable"].push_back({name, field});
  };
  for (const TensorFindings* tensor : tensors) {
    put_name(*tensor->log);
    put_name(tensor->name);
    json& steps = out["max_abs"].emplace_back(json::array());
    for (const auto& step : tensor->per_step) {
      steps.push_back(step.max_abs ? fmt::format("{}", *step.max_abs) : "");
    }
  }
  return out;
}

}  // namespace

json charts_json(const analyzers::Study& study) {
  const Analysis& analysis = study.analysis;
  const answer::Tensors tensors = kept_tensors(analysis);
  const Window window = charts::window_of(analysis, study.advice);
  const Window gradients = charts::gradient_window(analysis, study.advice);
  json out = {{"parameters", parameters_json(window, gradients)},
              {"series", all_series(analysis)},
              {"scaled", {"gradients"}},
              {"facts", json::array()},
              {"first_tensor", worst_tensor(analysis)},
              {"csv", csv_json(tensors)},
              {"own", own_charts_json(study)}};
  for (const log::Role role : answer::roles_in(analysis)) {
    if (answer::is_counted(analysis, role)) out["scaled"].push_back(name_of(role));
  }
  for (const TensorFindings* tensor : tensors) {
    out["facts"].push_back(answer::facts_text(*tensor) +
                           charts::left_out(window, tensor->binades.list()));
  }
  return out;
}

}  // namespace halfscope::reports::page
