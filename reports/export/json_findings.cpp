// SPDX-License-Identifier: Apache-2.0
// The output of `analyze --json`: the findings about every tensor, with the formats that fit it;
// the largest magnitudes of tensors that have no counts; the effects of 8-bit formats.
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analyzers/underflow/tensor_peaks.hpp"
#include "halfscope/version.hpp"
#include "reports/export/json.hpp"
#include "reports/export/json_parts.hpp"
#include "reports/export/json_weights.hpp"

namespace halfscope::reports::exports {

using namespace analyzers;

namespace {

/// Returns the largest magnitude, or [least, most] if only bounds are known.
Json largest_json(std::optional<double> at_least, std::optional<double> max_abs) {
  return at_least ? pair_json(at_least, max_abs) : number_json(max_abs);
}

Json peak_json(const frames::StepPeak& peak) {
  Json to;
  to["step"] = peak.step;
  to["max_abs"] = largest_json(peak.at_least, peak.max_abs);
  if (std::isnan(peak.max_abs)) to["nan"] = true;
  if (std::isinf(peak.max_abs)) to["inf"] = true;
  if (peak.min_abs_nonzero) to["min_abs_nonzero_at_least"] = number_json(peak.min_abs_nonzero);
  return to;
}

Json peaks_json(const underflow::TensorPeaks& t) {
  Json to;
  to["log"] = t.log;
  to["name"] = t.name;
  to["role"] = log::name_of(t.role);
  to["max_abs"] = largest_json(t.max_abs_at_least, t.max_abs);
  if (t.max_abs) to["max_abs_step"] = t.max_step;
  if (t.min_abs_nonzero) to["min_abs_nonzero_at_least"] = number_json(t.min_abs_nonzero);
  to["nan_steps"] = t.nan_steps;
  to["inf_steps"] = t.inf_steps;
  to["at_scale"] = t.at_scale;
  to["overflows"] = name_of(t.overflows);
  to["flushes"] = name_of(t.flushes);
  to["all_flushed"] = name_of(t.all_flushed);
  to["per_step"] = list_json(t.steps, peak_json);
  return to;
}

/// Adds `snr_db`, `snr`, and the bounds if these are estimates.
void put_noise(Json& to, const std::optional<underflow::NoiseRatio>& noise) {
  if (!noise) return;
  to["snr"] = noise->exact ? "exact" : "estimate";
  to["snr_db"] = number_json(noise->db);
  if (noise->exact || std::isinf(noise->low_db)) return;
  to["snr_db_bounds"] = pair_json(noise->low_db, noise->high_db);
}

/// Returns the fit of one format. If no value is finite and nonzero, the fit is unknown.
Json fit_json(const underflow::FormatFit& fit, const underflow::TensorFindings& tensor,
              Subnormals subnormals) {
  const bool any = tensor.counts.finite_nonzero.high > 0;
  const auto put_classes_at = [&](Json& at, int k) {
    put_classes(at, tensor.classes_at(fit, subnormals, k));
  };
  Json to = {{"format", fit.format}};
  if (find_format(fit.format)->format.width <= 8) to["saturating"] = fit.saturating;
  if (any) to["fits_at_1"] = fit.fits_at_1;
  put_classes_at(to["at_1"], 0);
  if (!fit.best_log2) return to;
  to["best_log2_scale"] = *fit.best_log2;
  to["fits_at_best"] = fit.fits_at_best;
  put_classes_at(to["at_best"], *fit.best_log2);
  put_noise(to, fit.noise_at_best);
  return to;
}

void put_recipe_fit(Json& to, const underflow::RecipeFit& fit) {
  to["values"] = fit.values;
  to["flushed_to_zero"] = fit.flushed_to_zero;
  to["saturated"] = fit.saturated;
  to["in_nan_blocks"] = fit.in_nan_blocks;
  put_noise(to, fit.noise);
}

/// Returns the fit of an MX format, which is "mxfp8", "mxfp6" or "mxfp4" by the elements' width.
Json mx_fit_json(const underflow::RecipeFit& fit) {
  const block::Element element = fit.recipe->element;
  Json to = {{"format", "mxfp" + std::to_string(block::width_of(element))},
             {"element", block::name_of(element)}};
  put_recipe_fit(to, fit);
  return to;
}

Json recipe_fit_json(const underflow::RecipeFit& fit) {
  Json to = {{"asked", fit.asked}, {"recipe", fit.recipe->name}, {"columns", fit.columns}};
  if (fit.not_allowed) return to;
  put_recipe_fit(to, fit);
  to["at_largest"] = fit.at_largest;
  to["normal_snr_db"] = number_json(fit.normal_db);
  to["normal_zero"] = number_json(fit.normal_zero);
  to["bias"] = number_json(fit.bias);
  to["bias_error"] = number_json(fit.bias_error);
  return to;
}

Json choice_json(const formats::HistoryChoice& choice) {
  Json to = {{"amax_history_len", choice.length},
             {"clipped", to_json(choice.clipped)},
             {"flushed_to_zero", to_json(choice.flushed)},
             {"clipped_steps", choice.clipped_steps},
             {"clipped_steps_by_chance", number_json(choice.by_chance)}};
  if (!choice.most_clipped.empty()) to["most_clipped"] = choice.most_clipped;
  return to;
}

void put_eight_bits(Json& to, const Findings& found) {
  for (const formats::AmaxHistory& history : found.amax_histories) {
    Json row = {{"log", history.log},
                {"tensors", history.tensors},
                {"steps", history.steps},
                {"left_out", history.left_out},
                {"values", to_json(history.values)},
                {"default_clips", history.clips()}};
    if (const auto* const better = history.better()) row["better"] = better->length;
    for (const auto& choice : history.choices) row["by_length"].push_back(choice_json(choice));
    row["with_margin_1"] = choice_json(history.with_margin);
    to["delayed_scaling"].push_back(std::move(row));
  }
  if (!found.mx_gradients) return;
  const formats::MxGradients& mx = *found.mx_gradients;
  Json& row = to["mx_gradients"];
  row = {{"tensors", mx.tensors},
         {"e4m3_better", mx.e4m3_better},
         {"e5m2_better", mx.e5m2_better},
         {"e4m3_median_db", number_json(mx.e4m3_db)},
         {"e5m2_median_db", number_json(mx.e5m2_db)}};
  if (mx.most_for_e5m2.empty()) return;
  row["most_for_e5m2"] = mx.most_for_e5m2;
  row["gained_db"] = number_json(mx.gained_db);
}

void put_formats(Json& to, const underflow::TensorFindings& tensor, Subnormals subnormals) {
  if (tensor.whole->fits.empty()) return;
  for (const underflow::FormatFit& fit : tensor.whole->fits) {
    to["formats"].push_back(fit_json(fit, tensor, subnormals));
  }
  if (const auto& narrow = tensor.whole->narrowest) {
    to["narrowest"] = {{"format", narrow->format}, {"needs_scale", narrow->needs_scale}};
  }
  if (tensor.whole->skipped_nan + tensor.whole->skipped_inf > 0) {
    to["left_out_of_formats"] = {{"nan", tensor.whole->skipped_nan},
                                 {"inf", tensor.whole->skipped_inf}};
  }
  if (!tensor.whole->whole_steps.empty()) to["whole_steps"] = tensor.whole->whole_steps;
  for (const underflow::RecipeFit& fit : tensor.whole->mx_fits) {
    to["mx_formats"].push_back(mx_fit_json(fit));
  }
  for (const underflow::RecipeFit& fit : tensor.whole->recipe_fits) {
    to["recipes"].push_back(recipe_fit_json(fit));
  }
  if (tensor.whole->lost_at_1) to["lost_mass"]["at_1"] = mass_json(*tensor.whole->lost_at_1);
  if (tensor.whole->lost) to["lost_mass"]["at_loss_scale"] = mass_json(*tensor.whole->lost);
}

Json step_json(const underflow::StepFindings& step) {
  Json to = {{"step", step.step}};
  put_counts(to, step.counts);
  return to;
}

Json by_scale_json(const std::vector<Classes>& by_scale) {
  int k = underflow::kFirstLog2Scale;
  return list_json(by_scale, [&](const Classes& classes) {
    Json entry = {{"log2_scale", k++}};
    put_classes(entry, classes);
    return entry;
  });
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
  to["steps"] = list_json(t.per_step, [](const auto& step) { return step.step; });
  to["shape"] = t.shape;
  put_counts(to, t.counts);
  to["max_abs"] = largest_json(t.max_abs_at_least, t.max_abs);
  to["min_abs_nonzero"] = t.min_abs_at_most ? pair_json(t.min_abs_nonzero, t.min_abs_at_most)
                                            : number_json(t.min_abs_nonzero);
  if (t.hidden_by_buckets) to["hidden_by_buckets"] = true;
  if (t.rounding_noise != 0) to["rounding_noise"] = t.rounding_noise;
  to["binades"] = binades_json(t.binades.list());
  to["by_scale"] = by_scale_json(t.by_scale(target));
  to["per_step"] = list_json(t.per_step, step_json);
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
  for (const underflow::TensorPeaks& t : peaks) to["peaks"].push_back(peaks_json(t));
  if (peaks.size() < found.peaks.size()) to["peaks_left_out"] = found.peaks.size() - peaks.size();
  put_adam(to, found);
  for (const auto& movement : found.movements) to["weights_moved"].push_back(to_json(movement));
  put_claims(to, found.claims);
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
  return list_json(binades, [](const underflow::BinadeCount& b) {
    return Json::array({b.exponent, to_json(b.count)});
  });
}

Json to_json(const Findings& found, const Part& part) {
  const underflow::Analysis& analysis = found.analysis;
  const std::vector<const overflow::Headroom*> headroom = headroom_by_tensor(found);
  Json to = head_json(analysis);
  to["tensors"] = list_json(part.tensors, [&](const underflow::TensorFindings* t) {
    return tensor_json(*t, analysis.target, headroom[analysis.tensors().index_of(*t)]);
  });
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
  std::string head = json_text(head_json(found.analysis));
  head.back() = ',';  // instead of the closing brace
  write(head + "\"tensors\":[");
  const char* before = "";
  each_tensor(found, json_text, [&](const std::string& tensor) {
    write(before + tensor);
    before = ",";
  });
  Json rest = Json::object();
  put_rest(rest, found, found.peaks, true);
  write((rest.empty() ? "]" : "],") + json_text(rest).substr(1));
}

}  // namespace halfscope::reports::exports
