// SPDX-License-Identifier: Apache-2.0
#include "reports/page/page_data.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <functional>
#include <string>
#include <utility>

#include "reports/charts/charts.hpp"
#include "reports/export/json.hpp"
#include "reports/page/own_data.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/shares.hpp"
#include "reports/answer/text.hpp"
#include "reports/page/worst.hpp"

namespace halfscope::reports {

using analyzers::Analysis;
using json = nlohmann::ordered_json;

namespace {

json pairs(const std::vector<analyzers::BinadeCount>& binades) {
  json out = json::array();
  for (const auto& [exponent, count] : binades) {
    out.push_back({exponent, to_json(count)});
  }
  return out;
}

/// A sum over tensors with the fields of a tensor in `analyze --json`, so that one script draws
/// both.
json series_json(const Tensors& tensors, const analyzers::Target& target) {
  const Series series = sum(tensors);
  const analyzers::Counts& counts = series.counts;
  json out = {{"total", counts.total},
              {"finite_nonzero", to_json(counts.finite_nonzero)},
              {"binades", pairs(series.binades)},
              {"by_scale", json::array()},
              {"columns", json::array()}};
  int k = analyzers::kFirstLog2Scale;
  for (const Classes& classes : by_scale(tensors, target)) {
    out["by_scale"].push_back({{"log2_scale", k++},
                               {"flushed_to_zero", to_json(classes.flushed_to_zero)},
                               {"subnormal", to_json(classes.subnormal)},
                               {"normal", to_json(classes.normal)},
                               {"overflow", to_json(classes.overflow)}});
  }
  for (const Column& column : series.columns) {
    out["columns"].push_back({{"step", column.first_step},
                              {"last", column.last_step},
                              {"binades", pairs(column.binades)}});
  }
  return out;
}

/// By the log's position, then "gradients" (all of them) or a role's name.
json all_series(const Analysis& analysis) {
  json out = json::object();
  for (std::size_t i = 0; i < analysis.logs.size(); ++i) {
    const Tensors tensors = of_log(analysis, analysis.logs[i]);
    json& log = out[std::to_string(i)] = json::object();
    log["gradients"] = series_json(counted_of(tensors), analysis.target);
    for (const log::Role role : roles_in(analysis)) {
      log[std::string(name_of(role))] = series_json(of_role(tensors, role), analysis.target);
    }
  }
  return out;
}

json both_axes(const std::function<json(Axis)>& draw) {
  return {{"linear", draw(Axis::linear)}, {"log", draw(Axis::logarithmic)}};
}

/// Specifications for what a loss scale acts on, and for the rest, where the recommended one would
/// change nothing.
json specs_json(const Window& scaled) {
  Window unscaled = scaled;
  unscaled.loss_scale = 1;  // no loss scale acts on these roles
  unscaled.recommended = unscaled.lowest = unscaled.highest = std::nullopt;
  json out;
  for (const auto& [name, window] : {std::pair("scaled", scaled), {"unscaled", unscaled}}) {
    const Window& w = window;
    out["histogram"][name] = both_axes([&](Axis axis) { return histogram(w, axis); });
    out["heat"][name] = both_axes([&](Axis) { return heat_map(w); });
    out["scales"][name] = both_axes([&](Axis axis) { return scale_curves(w, axis); });
  }
  return out;
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  std::string out;
  for (const std::uint64_t extent : shape)
    out += (out.empty() ? "" : " x ") + std::to_string(extent);
  return out.empty() ? "one value" : "shape " + out;
}

std::string counted_text(const analyzers::Counts& counts) {
  const std::string all = plural(counts.total, "value") + ", of them " + count_text(counts.zero);
  if (!counts.nonfinite_known) return all + " zero; NaN and infinities were not counted.";
  return all +
         fmt::format(" zero, {} NaN, {} infinite.", count_text(counts.nan), count_text(counts.inf));
}

/// Why underflow, or a count, is not known exactly.
std::string doubts(const analyzers::TensorFindings& tensor) {
  std::string out;
  if (tensor.hidden_by_buckets) {
    const Bounds share = flushed_share(tensor.counts);
    out += fmt::format(
        " What becomes zero is not identifiable ({}): a bucket of the log holds "
        "zero and values that are kept.",
        share_range_text(share.low, share.high));
  } else if (!tensor.underflow_identifiable) {
    out += " Computed in FP16: zeros may be flushed values, so underflow cannot be told.";
  } else if (tensor.suspected_fp16) {
    out += " All values are FP16 values: it may have been computed in FP16.";
  }
  if (!tensor.unscale_exact) out += " Counts are bounds: the recorded scale is no power of two.";
  return out;
}

/// What is to be said of one tensor above its charts.
std::string facts(const analyzers::TensorFindings& tensor, const Window& window) {
  std::string out = fmt::format(
      "{}, {}, {}: {}", tensor.source_dtype ? name_of(*tensor.source_dtype) : "format not told",
      shape_text(tensor.shape), plural(tensor.per_step.size(), "step"),
      counted_text(tensor.counts));
  if (tensor.max_abs) out += " Largest " + largest_text(tensor) + ".";
  return out + doubts(tensor) + left_out(window, tensor.binades);
}

}  // namespace

json charts_json(const analyzers::Study& study) {
  const Analysis& analysis = study.analysis;
  const Window window = window_of(analysis, study.advice);
  json out = {{"specs", specs_json(window)},
              {"themes", {{"light", theme(Theme::light)}, {"dark", theme(Theme::dark)}}},
              {"series", all_series(analysis)},
              {"scaled", {"gradients"}},
              {"facts", json::array()},
              {"first_tensor", worst_tensor(analysis)},
              {"own", own_charts_json(study)}};
  for (const log::Role role : roles_in(analysis)) {
    if (is_scaled(role)) out["scaled"].push_back(name_of(role));
  }
  for (const auto& tensor : analysis.tensors) out["facts"].push_back(facts(tensor, window));
  return out;
}

}  // namespace halfscope::reports
