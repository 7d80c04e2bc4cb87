// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/formats.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analyzers/formats/format_fit.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::underflow::Analysis;
using analyzers::underflow::TensorFindings;

std::string people_say(std::string_view format) {
  if (format == "binary16") return "FP16";
  if (format == "binary32") return "FP32";
  if (format == "binary64") return "FP64";
  if (format == "bfloat16") return "bfloat16";
  std::string out(format);
  std::transform(out.begin(), out.end(), out.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  return out;
}

std::string nonfinite_names(std::uint64_t nan, std::uint64_t inf) {
  return inf == 0 ? "NaN" : nan == 0 ? "infinities" : "NaN and infinities";
}

std::string left_out_text(const Analysis& analysis) {
  std::uint64_t nan = 0, inf = 0;
  for (const TensorFindings& tensor : analysis.tensors()) {
    nan += tensor.skipped_nan;
    inf += tensor.skipped_inf;
  }
  if (nan + inf == 0) return "";
  return fmt::format(
      "{} {} of skipped steps left out: the loss scale made them, and they decide no format.",
      count_text(nan + inf), nonfinite_names(nan, inf));
}

FitSums fit_sums(const Analysis& analysis) {
  FitSums out;
  for (const TensorFindings& tensor : analysis.tensors()) {
    if (tensor.fits.empty() || tensor.counts.finite_nonzero.high == 0) continue;
    ++out.tensors;
    if (holds_nonfinite(tensor)) {
      ++out.nonfinite;
      continue;
    }
    const auto narrowest = tensor.narrowest;
    const NamedFormat* format = narrowest ? find_format(narrowest->format) : nullptr;
    const int width = format ? format->format.width : 64;
    if (width <= 8) ++out.eight_bits;
    if (width <= 8 && !narrowest->needs_scale) ++out.eight_bits_as_is;
    if (width > 16) ++out.wider_than_16;
  }
  return out;
}

}  // namespace halfscope::reports::answer
