// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/histogram_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <vector>

#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::underflow::Analysis;
using analyzers::underflow::TensorFindings;

std::string histogram_text(const Tensors& tensors, const Series& sum, bool a_binade_each) {
  std::set<log::Role> roles;
  for (const TensorFindings* tensor : tensors) roles.insert(tensor->role);
  std::vector<std::string_view> names;
  for (const log::Role role : roles) names.push_back(log::name_of(role));
  const Interval of = sum.counts.finite_nonzero;
  return fmt::format("Unscaled magnitudes of {} finite nonzero {}: {} ({}, {}).{}", count_text(of),
                     of == 1 ? "value" : "values", fmt::join(names, ", "),
                     plural(sum.tensors, "tensor"), plural(sum.recorded_steps, "step"),
                     a_binade_each ? " The bar at 2^e holds 2^e up to 2^(e+1)." : "");
}

std::string hidden_zeros_text(const Tensors& tensors, const Series& sum) {
  const bool hidden = std::ranges::any_of(
      tensors, [](const TensorFindings* t) { return !t->underflow_identifiable; });
  if (!hidden || sum.counts.zero.high == 0) return "";
  return fmt::format("Not drawn: {} recorded as zero; some may be values that were flushed.",
                     count_text(sum.counts.zero));
}

std::string text_bars_text(const Analysis& analysis, const TextBars& bars) {
  std::string out = fmt::format("At the right: limits of {} at loss scale {}. ",
                                analysis.target.name, scale_text(analysis.loss_scale));
  out += bars.least == 0 ? "Bars are linear."
                         : fmt::format("Bars are logarithmic: one # is {} or fewer.",
                                       plural(bars.least, "value"));
  return bars.bounded ? out + " The log gives bounds: # at least, - at most." : out;
}

}  // namespace halfscope::reports::answer
