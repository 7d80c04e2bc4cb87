// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/formats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzers/formats/format_fit.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::underflow::Analysis;
using analyzers::underflow::TensorFindings;

std::string people_say(std::string_view format) {
  if (format == "binary16") return "FP16";
  if (format == "binary32") return "FP32";
  if (format == "binary64") return "FP64";
  if (format == "bfloat16") return "BF16";
  std::string out(format);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return out;
}

std::string people_say(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return "FP16";
    case Dtype::bf16: return "BF16";
    case Dtype::f32: return "FP32";
    case Dtype::f64: return "FP64";
    case Dtype::f8_e4m3: return "FP8 (E4M3)";
    case Dtype::f8_e5m2: return "FP8 (E5M2)";
  }
  return "";
}

const analyzers::underflow::FormatFit* find_fit(const TensorFindings& tensor,
                                                std::string_view format, bool saturating) {
  const auto at = std::ranges::find_if(tensor.whole->fits, [&](const auto& fit) {
    return fit.format == format && fit.saturating == saturating;
  });
  return at == tensor.whole->fits.end() ? nullptr : &*at;
}

std::string mx_name(std::string_view element) {
  const NamedFormat* const format = find_format(element);
  return fmt::format("MXFP{} {}", format ? format->format.width : 0, people_say(element));
}

std::string computed_text(const analyzers::underflow::TensorFindings& t) {
  const Dtype dtype = t.suspected_fp16
                          ? Dtype::f16
                          : t.computed_dtype.value_or(t.source_dtype.value_or(Dtype::f32));
  return people_say(dtype);
}

std::string nonfinite_names(std::uint64_t nan, std::uint64_t inf) {
  return inf == 0 ? "NaN" : nan == 0 ? "infinities" : "NaN and infinities";
}

std::string skipped_values_text(const Analysis& analysis) {
  std::uint64_t nan = 0, inf = 0;
  for (const TensorFindings& tensor : analysis.tensors()) {
    nan += tensor.whole->skipped_nan;
    inf += tensor.whole->skipped_inf;
  }
  if (nan + inf == 0) return "";
  return fmt::format(
      "{} {} of skipped steps are left out: the loss scale made them, and they decide no format.",
      count_text(nan + inf), nonfinite_names(nan, inf));
}

std::string fit_rule_text(double sufficient_snr_db) {
  return fmt::format(
      "A format fits where nothing overflows and the signal-to-quantisation-noise ratio is {:g} dB "
      "or more: the errors, what becomes zero included, hold {} of the values' sum of squares at "
      "most.",
      sufficient_snr_db, share_text(std::pow(10.0, -sufficient_snr_db / 10)));
}

FitSums fit_sums(const Analysis& analysis) {
  FitSums out;
  for (const TensorFindings& tensor : analysis.tensors()) {
    if (tensor.whole->fits.empty() || tensor.counts.finite_nonzero.high == 0) continue;
    ++out.tensors;
    if (holds_nonfinite(tensor)) {
      ++out.nonfinite;
      continue;
    }
    const auto narrowest = tensor.whole->narrowest;
    const NamedFormat* format = narrowest ? find_format(narrowest->format) : nullptr;
    const int width = format ? format->format.width : 64;
    if (width <= 8) ++out.eight_bits;
    if (width <= 8 && !narrowest->needs_scale) ++out.eight_bits_as_is;
    if (width > 16) ++out.wider_than_16;
  }
  return out;
}

OwnScales own_scales(const Tensors& tensors, std::string_view format, Subnormals subnormals) {
  OwnScales out;
  for (const TensorFindings* t : tensors) {
    const analyzers::underflow::FormatFit* const fit = find_fit(*t, format);
    if (fit == nullptr || !fit->best_log2) continue;
    ++out.tensors;
    out.fit += fit->fits_at_best ? 1 : 0;
    out.lowest = std::min(out.lowest.value_or(*fit->best_log2), *fit->best_log2);
    out.highest = std::max(out.highest.value_or(*fit->best_log2), *fit->best_log2);
    out.zero += t->classes_at(*fit, subnormals, *fit->best_log2).flushed_to_zero;
    out.zero_at_1 += t->classes_at(*fit, subnormals, 0).flushed_to_zero;
    out.values += t->counts.finite_nonzero.high;
  }
  return out;
}

std::optional<EachScaled> each_scaled(const Analysis& analysis) {
  const auto& target = analysis.target;
  if (target.format.width != 8) return std::nullopt;
  const Tensors tensors = all_tensors(analysis);
  EachScaled out = {own_scales(tensors, target.name, target.subnormals),
                    own_scales(counted_of(tensors), target.name, target.subnormals)};
  return out.all.tensors == 0 ? std::nullopt : std::optional(out);
}

}  // namespace halfscope::reports::answer
