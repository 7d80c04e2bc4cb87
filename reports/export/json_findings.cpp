// SPDX-License-Identifier: Apache-2.0
// The findings about every tensor as JSON.
#include <tbb/parallel_for.h>

#include <algorithm>
#include <utility>

#include "halfscope/version.hpp"
#include "reports/export/json.hpp"
#include "reports/export/json_parts.hpp"
#include "reports/export/pieces.hpp"

namespace halfscope::reports::exports {

using analyzers::underflow::StepFindings;

namespace {

using namespace analyzers;

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

Json per_step_json(const underflow::StepList& steps) {
  Json list = Json::array();
  for (const StepFindings& step : steps) {
    Json entry = {{"step", step.step}};
    put_counts(entry, step.counts);
    list.push_back(std::move(entry));
  }
  return list;
}

Json steps_json(const underflow::StepList& steps) {
  Json list = Json::array();
  for (const StepFindings& step : steps) list.push_back(step.step);
  return list;
}

/// Returns [low, high] of a number; null stands for an unknown bound.
Json pair_json(std::optional<double> low, std::optional<double> high) {
  return Json::array({number_json(low), number_json(high)});
}

Json tensor_json(const underflow::TensorFindings& t, const underflow::Target& target,
                 const overflow::Headroom* headroom) {
  Json to;
  to["log"] = *t.log;
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
      t.max_abs_at_least ? pair_json(t.max_abs_at_least, t.max_abs) : number_json(t.max_abs);
  to["min_abs_nonzero"] = t.min_abs_at_most ? pair_json(t.min_abs_nonzero, t.min_abs_at_most)
                                            : number_json(t.min_abs_nonzero);
  if (t.hidden_by_buckets) to["hidden_by_buckets"] = true;
  if (t.rounding_noise != 0) to["rounding_noise"] = t.rounding_noise;
  to["binades"] = binades_json(t.binades.list());
  to["by_scale"] = by_scale_json(t.by_scale(target));
  to["per_step"] = per_step_json(t.per_step);
  if (t.updates) put_updates(to, *t.updates);
  put_formats(to, t, target.subnormals);
  if (headroom) to["headroom"] = headroom_json(*headroom);
  return to;
}

/// Returns each tensor's headroom; null for a tensor without it.
std::vector<const overflow::Headroom*> headroom_by_tensor(const Findings& found) {
  std::vector<const overflow::Headroom*> all(found.analysis.tensors().size());
  for (const overflow::Headroom& h : found.overflow.headroom) all[h.tensor] = &h;
  return all;
}

/// Returns the fields before the tensors.
Json head_json(const underflow::Analysis& analysis) {
  Json to;
  to["schema"] = kJsonSchema;
  to["halfscope"] = kVersion;
  to["logs"] = analysis.names();
  to["format"] = analysis.target.name;
  to["loss_scale"] = analysis.loss_scale;
  if (analysis.target.subnormals != Subnormals::keep) {
    to["subnormals"] = name_of(analysis.target.subnormals);
  }
  return to;
}

/// Adds the fields after the tensors.
void put_rest(Json& to, const Findings& found, const std::vector<underflow::TensorPeaks>& peaks,
              bool whole) {
  put_peaks(to, peaks);
  if (peaks.size() < found.peaks.size()) to["peaks_left_out"] = found.peaks.size() - peaks.size();
  put_adam(to, found);
  put_eight_bits(to, found);
  put_layers(to, found);
  put_ranks(to, found, whole);
  put_quantised(to, found, whole);
  put_timeline(to, found);
  put_gaps(to, found);
}

/// Calls make(JSON) for each tensor, on all cores, and take(result) for each result, in order.
template <class Make, class Take>
void each_tensor(const Findings& found, const Make& make, const Take& take) {
  constexpr std::size_t kBatch = 256;  // tensors in memory at once
  const underflow::Target& target = found.analysis.target;
  const std::vector<const overflow::Headroom*> headroom = headroom_by_tensor(found);
  std::vector<const underflow::TensorFindings*> tensors;
  for (const underflow::TensorFindings& t : found.analysis.tensors()) tensors.push_back(&t);
  std::vector<decltype(make(Json()))> made(kBatch);
  for (std::size_t first = 0; first < tensors.size(); first += kBatch) {
    const std::size_t count = std::min(kBatch, tensors.size() - first);
    tbb::parallel_for(std::size_t{0}, count, [&](std::size_t i) {
      made[i] = make(tensor_json(*tensors[first + i], target, headroom[first + i]));
    });
    for (std::size_t i = 0; i < count; ++i) take(std::move(made[i]));
  }
}

}  // namespace

void put_classes(Json& to, const Classes& c) {
  to["flushed_to_zero"] = to_json(c.flushed_to_zero);
  to["subnormal"] = to_json(c.subnormal);
  to["normal"] = to_json(c.normal);
  to["overflow"] = to_json(c.overflow);
}

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

Json to_json(const Findings& found, const Part& part) {
  const underflow::Analysis& analysis = found.analysis;
  const std::vector<const overflow::Headroom*> headroom = headroom_by_tensor(found);
  Json to = head_json(analysis);
  to["tensors"] = Json::array();
  for (const underflow::TensorFindings* t : part.tensors) {
    to["tensors"].push_back(
        tensor_json(*t, analysis.target, headroom[analysis.tensors().index_of(*t)]));
  }
  const std::size_t all = analysis.tensors().size();
  if (part.tensors.size() < all) to["tensors_left_out"] = all - part.tensors.size();
  put_rest(to, found, part.peaks, false);
  return to;
}

Json to_json(const Findings& found, const TakeJson& tensor) {
  Json to = head_json(found.analysis);
  to["tensors"] = Json::array();
  each_tensor(
      found, [](Json&& made) { return std::move(made); }, tensor);
  put_rest(to, found, found.peaks, true);
  return to;
}

void write_findings(const Findings& found, const WriteText& write) {
  Pieces to(write);
  to.open(head_json(found.analysis));
  to.array("tensors", [&] {
    each_tensor(found, json_text, [&to](const std::string& text) { to.add_element(text); });
  });
  Json rest = Json::object();
  put_rest(rest, found, found.peaks, true);
  to.fields(rest);
  to.add("}");
  to.flush();
}

}  // namespace halfscope::reports::exports
