// SPDX-License-Identifier: Apache-2.0
// The formats that fit a tensor, the mass it loses in them, and the effects of 8-bit formats.
#include <cmath>

#include "reports/export/json.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {
namespace {

using namespace analyzers;

/// Adds `snr_db`, `snr`, and the bounds if these are estimates.
void put_noise(Json& to, const std::optional<underflow::NoiseRatio>& noise) {
  if (!noise) return;
  to["snr"] = noise->exact ? "exact" : "estimate";
  to["snr_db"] = number_json(noise->db);
  if (noise->exact || std::isinf(noise->low_db)) return;
  to["snr_db_bounds"] = Json::array({number_json(noise->low_db), number_json(noise->high_db)});
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

/// Returns the fit of a block format, which is "mxfp8", "mxfp6" or "mxfp4" by the elements' width.
Json block_fit_json(const underflow::BlockFit& fit) {
  const int width = find_format(fit.element)->format.width;
  Json to = {{"format", "mxfp" + std::to_string(width)},
             {"element", fit.element},
             {"values", fit.values},
             {"flushed_to_zero", fit.flushed_to_zero},
             {"saturated", fit.saturated},
             {"in_nan_blocks", fit.in_nan_blocks}};
  put_noise(to, fit.noise);
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

}  // namespace

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
  for (const underflow::BlockFit& fit : tensor.whole->block_fits) {
    to["mx_formats"].push_back(block_fit_json(fit));
  }
  if (tensor.whole->lost_at_1) to["lost_mass"]["at_1"] = mass_json(*tensor.whole->lost_at_1);
  if (tensor.whole->lost) to["lost_mass"]["at_loss_scale"] = mass_json(*tensor.whole->lost);
}

}  // namespace halfscope::reports::exports
