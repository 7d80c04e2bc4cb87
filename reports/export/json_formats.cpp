// SPDX-License-Identifier: Apache-2.0
// Which formats a tensor fits, and how much of its mass is lost.
#include <cmath>

#include "reports/export/json.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {
namespace {

using namespace analyzers;

/// `snr_db`, `snr`, and the bounds of an estimate.
void put_noise(Json& to, const std::optional<underflow::NoiseRatio>& noise) {
  if (!noise) return;
  to["snr"] = noise->exact ? "exact" : "estimate";
  to["snr_db"] = number_json(noise->db);
  if (noise->exact || std::isinf(noise->low_db)) return;
  to["snr_db_bounds"] = Json::array({number_json(noise->low_db), number_json(noise->high_db)});
}

/// Where no value is finite and nonzero, nothing is known to fit.
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

/// "mxfp8", "mxfp6" or "mxfp4", by the elements' width.
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

}  // namespace

void put_formats(Json& to, const underflow::TensorFindings& tensor, Subnormals subnormals) {
  if (tensor.fits.empty()) return;
  for (const underflow::FormatFit& fit : tensor.fits) {
    to["formats"].push_back(fit_json(fit, tensor, subnormals));
  }
  if (const auto& narrow = tensor.narrowest) {
    to["narrowest"] = {{"format", narrow->format}, {"needs_scale", narrow->needs_scale}};
  }
  if (tensor.skipped_nan + tensor.skipped_inf > 0) {
    to["left_out_of_formats"] = {{"nan", tensor.skipped_nan}, {"inf", tensor.skipped_inf}};
  }
  if (!tensor.whole_steps.empty()) to["whole_steps"] = tensor.whole_steps;
  for (const underflow::BlockFit& fit : tensor.block_fits) {
    to["mx_formats"].push_back(block_fit_json(fit));
  }
  if (tensor.lost_at_1) to["lost_mass"]["at_1"] = mass_json(*tensor.lost_at_1);
  if (tensor.lost) to["lost_mass"]["at_loss_scale"] = mass_json(*tensor.lost);
}

}  // namespace halfscope::reports::exports
