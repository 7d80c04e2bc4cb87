// SPDX-License-Identifier: Apache-2.0
#include "reports/export/json.hpp"

#include <cmath>

#include "halfscope/version.hpp"
#include "reports/answer/no_scale.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {

using analyzers::underflow::StepFindings;

namespace {

using namespace analyzers;

void put_classes(Json& to, const Classes& c) {
  to["flushed_to_zero"] = to_json(c.flushed_to_zero);
  to["subnormal"] = to_json(c.subnormal);
  to["normal"] = to_json(c.normal);
  to["overflow"] = to_json(c.overflow);
}

Json by_scale_json(const std::vector<Classes>& by_scale) {
  Json list = Json::array();
  int k = underflow::kFirstLog2Scale;
  for (const Classes& classes : by_scale) {
    Json entry = {{"log2_scale", k++}};
    put_classes(entry, classes);
    list.push_back(std::move(entry));
  }
  return list;
}

Json per_step_json(const std::vector<StepFindings>& steps) {
  Json list = Json::array();
  for (const StepFindings& step : steps) {
    Json entry = {{"step", step.step}};
    put_counts(entry, step.counts);
    list.push_back(std::move(entry));
  }
  return list;
}

Json steps_json(const std::vector<StepFindings>& steps) {
  Json list = Json::array();
  for (const StepFindings& step : steps) list.push_back(step.step);
  return list;
}

/// The least and the most that a number can be; null where it has no bound.
Json bounds_json(std::optional<double> low, std::optional<double> high) {
  return Json::array({number_json(low), number_json(high)});
}

Json tensor_json(const underflow::TensorFindings& t, const underflow::Target& target) {
  Json to;
  to["log"] = t.log;
  to["name"] = t.name;
  to["role"] = log::name_of(t.role);
  to["role_source"] = frames::name_of(t.role_source);
  if (t.source_dtype) to["source_dtype"] = halfscope::name_of(*t.source_dtype);
  if (t.computed_dtype) to["computed_dtype"] = halfscope::name_of(*t.computed_dtype);
  if (t.suspected_fp16) {
    to["computed_dtype"] = "suspected_fp16";
    to["suspected_fp16"] = true;
  }
  to["underflow_identifiable"] = t.underflow_identifiable;
  to["unscale"] = t.unscale_exact ? "exact" : "interval";
  to["steps"] = steps_json(t.per_step);
  to["shape"] = t.shape;
  put_counts(to, t.counts);
  to["max_abs"] =
      t.max_abs_at_least ? bounds_json(t.max_abs_at_least, t.max_abs) : number_json(t.max_abs);
  to["min_abs_nonzero"] = t.min_abs_at_most ? bounds_json(t.min_abs_nonzero, t.min_abs_at_most)
                                            : number_json(t.min_abs_nonzero);
  if (t.hidden_by_buckets) to["hidden_by_buckets"] = true;
  to["binades"] = binades_json(t.binades);
  to["by_scale"] = by_scale_json(t.by_scale(target));
  to["per_step"] = per_step_json(t.per_step);
  if (t.updates) put_updates(to, *t.updates);
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
  if (several_logs) to["log"] = limit.log;
  return to;
}

}  // namespace

void put_counts(Json& to, const underflow::Counts& c) {
  to["total"] = c.total;
  to["zero"] = to_json(c.zero);
  if (c.nonfinite_known) {
    to["nan"] = to_json(c.nan);
    to["inf"] = to_json(c.inf);
  }
  if (!c.finite_nonzero.exact()) to["finite_nonzero"] = to_json(c.finite_nonzero);
  put_classes(to, c.classes);
}

Json binades_json(const std::vector<underflow::BinadeCount>& binades) {
  Json list = Json::array();
  for (const underflow::BinadeCount& b : binades) {
    list.push_back(Json::array({b.exponent, to_json(b.count)}));
  }
  return list;
}

Json to_json(const Interval& count) {
  return count.exact() ? Json(count.low) : Json::array({count.low, count.high});
}

Json number_json(std::optional<double> x) {
  return x && std::isfinite(*x) ? Json(*x) : Json(nullptr);
}

Json power_json(std::optional<int> log2) {
  return log2 ? Json(std::ldexp(1.0, *log2)) : Json(nullptr);
}

std::string json_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json to_json(const Findings& found) {
  Part all = {{}, found.peaks};
  for (const underflow::TensorFindings& t : found.analysis.tensors()) all.tensors.push_back(&t);
  return to_json(found, all);
}

Json to_json(const Findings& found, const Part& part) {
  const underflow::Analysis& analysis = found.analysis;
  Json to;
  to["schema"] = kJsonSchema;
  to["halfscope"] = kVersion;
  to["logs"] = analysis.names();
  to["format"] = analysis.target.name;
  to["loss_scale"] = analysis.loss_scale;
  if (analysis.target.subnormals != Subnormals::keep) {
    to["subnormals"] = name_of(analysis.target.subnormals);
  }
  to["tensors"] = Json::array();
  std::vector<std::size_t> indices;
  for (const underflow::TensorFindings* t : part.tensors) {
    to["tensors"].push_back(tensor_json(*t, analysis.target));
    put_formats(to["tensors"].back(), *t);
    indices.push_back(analysis.tensors().index_of(*t));
  }
  const auto left_out = [&](const char* name, std::size_t all, std::size_t here) {
    if (here < all) to[name] = all - here;
  };
  left_out("tensors_left_out", analysis.tensors().size(), part.tensors.size());
  put_headroom(to["tensors"], found.overflow, indices);
  put_peaks(to, part.peaks);
  left_out("peaks_left_out", found.peaks.size(), part.peaks.size());
  put_timeline(to, found);
  put_gaps(to, found);
  return to;
}

namespace {

/// The scale, and what it rests on.
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

/// What becomes zero at it.
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

}  // namespace

Json to_json(const Study& study) {
  Json to;
  put_scale(to, study.advice);
  put_advice(to, study.advice);
  put_cures(to, study);
  put_underflow(to, study.advice);
  put_overflow(to, study.analysis, study.overflow);
  put_timeline(to, study);
  put_gaps(to, study);
  put_answer(to, study);
  return to;
}

}  // namespace halfscope::reports::exports
