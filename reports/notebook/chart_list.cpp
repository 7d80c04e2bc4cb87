// SPDX-License-Identifier: Apache-2.0
#include "reports/notebook/chart_list.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "halfscope/log/error.hpp"
#include "reports/answer/captions.hpp"
#include "reports/answer/series.hpp"
#include "reports/charts/charts.hpp"
#include "reports/charts/rows.hpp"
#include "reports/page/own_data.hpp"

namespace halfscope::reports::notebook {

using analyzers::Study;
using analyzers::underflow::Analysis;

using json = nlohmann::ordered_json;

namespace {

/// Parameters of the charts of series, by kind of series.
struct Parameters {
  json scaled, unscaled, gradients;

  explicit Parameters(const Study& study) {
    const charts::Window window = charts::window_of(study.analysis, study.advice);
    scaled = charts::series_parameters(window);
    unscaled = charts::series_parameters(charts::unscaled(window));
    gradients = charts::gradient_parameters(charts::gradient_window(study.analysis, study.advice));
  }
};

/// A sum over tensors of one log, with the names for its charts.
struct Drawn {
  const Study& study;
  const answer::Tensors& tensors;
  std::string log, name;
  bool scaled = false;  ///< true if a loss scale acts on it
  answer::Series series = answer::sum(tensors);

  bool empty() const { return series.counts.finite_nonzero.high == 0; }
};

void add(json& to, const Drawn& drawn, std::string_view chart, const json& parameters,
         json&& rows) {
  if (rows.empty()) return;
  to.push_back({{"name", fmt::format("{}/{}", chart, drawn.name)},
                {"chart", chart},
                {"log", drawn.log},
                {"parameters", parameters},
                {"rows", std::move(rows)}});
}

void add_series(json& to, const Drawn& drawn, const Parameters& parameters) {
  if (drawn.empty()) return;
  const json& of = drawn.scaled ? parameters.scaled : parameters.unscaled;
  add(to, drawn, "histogram", of, charts::bar_rows(drawn.series));
  add(to, drawn, "heat", of, charts::cell_rows(drawn.series));
  add(to, drawn, "scales", of,
      charts::scale_rows(drawn.tensors, drawn.series, drawn.study.analysis.target));
}

void add_gradients(json& to, const Drawn& drawn, const Parameters& parameters) {
  if (drawn.empty()) return;
  add(to, drawn, "gradients", parameters.gradients, charts::bar_rows(drawn.series));
  to.back()["name"] = "gradients";
}

void add_log(json& to, const Study& study, const analyzers::underflow::LogFindings& log,
             const Parameters& parameters) {
  const std::string name = log::printable(log.name);
  const answer::Tensors tensors = answer::of_log(log);
  const answer::Tensors gradients = answer::counted_of(tensors);
  const Drawn all{study, gradients, name, "gradients", true};
  add_gradients(to, all, parameters);
  if (!all.empty()) {
    add(to, all, "scales", parameters.scaled,
        charts::scale_rows(gradients, all.series, study.analysis.target));
  }
  for (const log::Role role : answer::roles_in(study.analysis)) {
    const answer::Tensors of_role = answer::of_role(tensors, role);
    add_series(to,
               {study, of_role, name, std::string(name_of(role)),
                answer::is_counted(study.analysis, role)},
               parameters);
  }
}

/// Returns the captions of the charts with rows of their own, by the specification's name.
std::map<std::string, answer::Caption, std::less<>> captions(const Study& study) {
  const analyzers::underflow::Target& target = study.analysis.target;
  return {{"update-map", answer::update_map_caption(target, false)},
          {"update-ratios", answer::update_ratios_caption(charts::first_ratio(target))},
          {"update-errors", answer::update_errors_caption()},
          {"outcomes", answer::outcomes_caption(charts::kBarsDrawn)},
          {"rooms", answer::headroom_caption(study)},
          {"trends", answer::headroom_steps_caption()},
          {"policy-scales", answer::policy_scales_caption()},
          {"policy-flushed", answer::policy_flushed_caption()},
          {"timeline", answer::timeline_caption(study)},
          {"fits", answer::fits_caption()}};
}

json named(const json& fields, const json& rows) {
  json out = json::array();
  for (const json& row : rows) {
    json object = json::object();
    for (std::size_t i = 0; i < row.size() && i < fields.size(); ++i) {
      object[fields[i].get<std::string>()] = row[i];
    }
    out.push_back(std::move(object));
  }
  return out;
}

/// Adds the charts of one log with rows of their own, except those of single weights.
void add_own(json& to, const Study& study, const json& own, std::size_t log) {
  const auto titles = captions(study);
  const std::string at = std::to_string(log);
  for (const auto& [chart, parts] : own.items()) {
    if (!parts["rows"].contains(at)) continue;
    for (const auto& [key, rows] : parts["rows"][at].items()) {
      const bool weight = key.find_first_not_of("0123456789") == key.npos;
      if (weight || rows.empty()) continue;
      json entry = {{"name", key == "all" ? chart : chart + "/" + key},
                    {"chart", chart},
                    {"log", log::printable(study.analysis.logs[log].name)}};
      if (const auto found = titles.find(chart); found != titles.end()) {
        entry["title"] = found->second.title;
        entry["note"] = found->second.note;
      }
      entry["parameters"] = parts["parameters"];
      entry["rows"] = named(parts["fields"], rows);
      to.push_back(std::move(entry));
    }
  }
}

}  // namespace

json charts_of(const Study& study) {
  json out = json::array();
  const Parameters parameters(study);
  const json own = page::own_charts_json(study);
  for (std::size_t log = 0; log < study.analysis.logs.size(); ++log) {
    add_log(out, study, study.analysis.logs[log], parameters);
    add_own(out, study, own, log);
  }
  return out;
}

json charts_of_tensor(const Study& study, const std::string& tensor) {
  json out = json::array();
  for (const analyzers::underflow::TensorFindings& found : study.analysis.tensors()) {
    if (found.name != tensor) continue;
    const answer::Tensors one = {&found};
    add_series(out,
               {study, one, log::printable(*found.log), log::printable(tensor), found.loss_scaled},
               Parameters(study));
    break;
  }
  return out;
}

}  // namespace halfscope::reports::notebook
