// SPDX-License-Identifier: Apache-2.0

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "halfscope/log/error.hpp"
#include "reports/answer/policies.hpp"
#include "reports/answer/policy_lines.hpp"
#include "reports/answer/text.hpp"
#include "reports/charts/charts.hpp"
#include "reports/page/page_data.hpp"

namespace halfscope::reports::page {

using namespace analyzers;

using analyzers::replay::PolicyStudy;
using analyzers::replay::Trace;
using answer::Plateau;
using answer::PolicyLine;

using json = nlohmann::ordered_json;

namespace {

/// Returns the values with which every row of a line begins.
json line_row(const char* kind, const PolicyLine& line, std::size_t order) {
  return json::array({kind, log::printable(line.name), order, line.fixed ? 1 : 0});
}

void add(json& row, std::initializer_list<json> more) {
  for (const json& value : more) row.push_back(value);
}

/// Returns why a line ends before the run; an empty string if it does not.
std::string end_of(const replay::Trace& trace) {
  if (trace.error) return "ends training";
  if (trace.scale.empty()) return "";
  const double scale = trace.scale.back().second;
  if (scale == 0) return "0";
  return std::isfinite(scale) ? "" : "infinity";
}

/// Adds a row at the beginning and the end of the run for every line, so that the axis is complete.
void add_frame(json& rows, const std::vector<PolicyLine>& lines, const replay::StepSeries& series) {
  if (series.steps.empty()) return;
  for (std::size_t order = 0; order < lines.size(); ++order) {
    for (const std::int64_t step : {series.steps.front(), series.steps.back() + 1}) {
      rows.push_back(line_row("frame", lines[order], order));
      rows.back().push_back(step);
    }
  }
}

/// Rows of [kind, name, order, fixed, step, until, last, log2, scale, what, count].
json scale_rows(const PolicyStudy& study) {
  json out = json::array();
  const std::vector<std::int64_t>& steps = study.series.steps;
  const auto step_at = [&](std::size_t index) {
    return steps.front() + static_cast<std::int64_t>(index);
  };
  const std::vector<PolicyLine> lines = answer::policy_lines(study);
  add_frame(out, lines, study.series);
  std::size_t order = 0;
  for (const PolicyLine& line : lines) {
    const std::vector<Plateau> drawn = answer::plateaus(*line.trace);
    const auto put = [&](const char* kind, std::int64_t step, std::int64_t until, std::int64_t last,
                         double scale, const std::string& what, std::uint64_t count) {
      json row = line_row(kind, line, order);
      add(row, {step, until, last, std::log2(scale), scale, what, count});
      out.push_back(std::move(row));
    };
    for (const Plateau& p : drawn) {
      put("scale", step_at(p.first), step_at(p.until), step_at(p.last), p.scale, "", 1);
    }
    if (!drawn.empty()) {
      const Plateau& p = drawn.back();
      put("last", step_at(p.until), step_at(p.until), step_at(p.until), p.scale, "", 1);
      const std::string end = end_of(*line.trace);
      if (!end.empty()) put("end", step_at(p.until), 0, step_at(p.until), p.scale, end, 1);
    }
    for (const answer::Mark& mark : answer::marks(*line.trace, study.series)) {
      if (!(mark.scale > 0) || !std::isfinite(mark.scale)) continue;
      put("mark", mark.first, 0, mark.last, mark.scale, std::string(answer::name_of(mark.what)),
          mark.count);
    }
    ++order;
  }
  return out;
}

/// A row of the chart of flushed shares: one trace, or several with equal results.
struct FlushedRow {
  std::string name;
  const replay::Trace* trace;
};

/// Returns the run's own policy, the recommended one, and the best of the others, as many as the
/// chart can show; ordered by flushed share, smallest first.
std::vector<FlushedRow> flushed_traces(const PolicyStudy& study) {
  std::vector<FlushedRow> out, others;
  const auto add = [](std::vector<FlushedRow>& to, const std::string& name, const Trace& trace) {
    if (trace.mean_flushed) to.push_back({name, &trace});
  };
  for (const auto& [name, trace] : answer::references(study)) add(out, name, *trace);
  for (const auto& group : study.groups) {
    const Trace& trace = study.traces[group.front()];
    if (trace.unavailable.empty()) add(others, answer::group_name(study, group), trace);
  }
  const auto most = [](const FlushedRow& row) {
    return std::pair(row.trace->mean_flushed->second, row.trace->mean_flushed->first);
  };
  std::ranges::stable_sort(others, {}, most);
  others.resize(std::min(others.size(), charts::kPolicyRowsDrawn - out.size()));
  out.insert(out.end(), others.begin(), others.end());
  std::ranges::stable_sort(out, {}, most);
  return out;
}

/// Rows of [name, low, high, worst, mean_text, worst_text].
json flushed_rows(const PolicyStudy& study) {
  json out = json::array();
  for (const auto& [name, trace] : flushed_traces(study)) {
    const auto text = [](const std::pair<double, double>& share) {
      return answer::share_range_text(share.first, share.second);
    };
    const auto& mean = *trace->mean_flushed;
    const auto& worst = trace->worst_flushed.value_or(mean);
    out.push_back({log::printable(name), mean.first, mean.second, worst.second, text(mean),
                   text(worst) + " at step " + answer::step_text(trace->worst_step)});
  }
  return out;
}

/// Returns the kinds of marks that occur in some log, with their symbols, so that the legend has no
/// others. If none occurs, there is no legend, but the scale still needs one symbol.
json mark_parameters(const Study& study) {
  using answer::Happening;
  constexpr std::pair<Happening, const char*> kSymbols[] = {{Happening::overflow, "triangle-down"},
                                                            {Happening::in_model, "cross"},
                                                            {Happening::unknown, "diamond"},
                                                            {Happening::applied, "square"},
                                                            {Happening::retried, "triangle-up"}};
  std::set<Happening> found;
  for (const PolicyStudy& replayed : study.policies) {
    for (const PolicyLine& line : answer::policy_lines(replayed)) {
      for (const answer::Mark& mark : answer::marks(*line.trace, replayed.series)) {
        found.insert(mark.what);
      }
    }
  }
  json out = {{"marks", json::array()}, {"symbols", json::array()}};
  for (const auto& [kind, symbol] : kSymbols) {
    if (!found.contains(kind)) continue;
    out["marks"].push_back(answer::name_of(kind));
    out["symbols"].push_back(symbol);
  }
  if (found.empty()) return {{"marks", {""}}, {"symbols", {"circle"}}, {"mark-legend", nullptr}};
  out["mark-legend"] = {{"$", "legend-below"}};
  return out;
}

}  // namespace

void put_policy_charts(const Study& study, json& to) {
  if (study.policies.empty()) return;
  to["policy-scales"] = own_chart(
      {"kind", "name", "order", "fixed", "step", "until", "last", "log2", "scale", "what", "count"},
      mark_parameters(study));
  to["policy-flushed"] = own_chart({"name", "low", "high", "worst", "mean_text", "worst_text"});
  for (std::size_t log = 0; log < study.analysis.logs.size(); ++log) {
    const std::string at = std::to_string(log);
    for (const PolicyStudy& replayed : study.policies) {
      if (replayed.series.log != study.analysis.logs[log].name) continue;
      to["policy-scales"]["rows"][at]["all"] = scale_rows(replayed);
      to["policy-flushed"]["rows"][at]["all"] = flushed_rows(replayed);
    }
  }
}

}  // namespace halfscope::reports::page
