// SPDX-License-Identifier: Apache-2.0
#include "reports/page/gradients_html.hpp"

#include <fmt/format.h>

#include "reports/answer/histogram_words.hpp"
#include "reports/answer/no_scale.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/shares.hpp"
#include "reports/answer/text.hpp"
#include "reports/charts/charts.hpp"

namespace halfscope::reports::page {

using analyzers::recommend::Recommendation;
using analyzers::underflow::Analysis;
using analyzers::underflow::TensorFindings;

namespace {

/// Outcome of all gradients of a log at one scale.
struct AtScale {
  Classes classes;
  std::string words;            ///< "without loss scaling", "at the recommended 1024 (2^10)"
  bool saved_by_other = false;  ///< true: drawn paler, because another scale may avoid it
};

std::string swatches(const AtScale& at, std::string_view kind) {
  const auto swatch = [&](std::string_view shade) {
    return fmt::format("<span class=\"swatch {} {}\"></span>", kind, shade);
  };
  return (at.saved_by_other ? swatch("saved") : "") + swatch("solid");
}

std::string lost_html(const AtScale& at, Interval Classes::*part, const Interval& of,
                      std::string_view kind, std::string_view becomes) {
  return fmt::format("{}{} {} {}", swatches(at, kind),
                     answer::html_escape(answer::class_share_text(at.classes, part, of)), becomes,
                     at.words);
}

std::vector<AtScale> scales_of(const Analysis& analysis, const Recommendation& advice,
                               const answer::Tensors& gradients, const Classes& now) {
  const charts::Window window = charts::gradient_window(analysis, advice);
  const bool other = charts::scales_of(window).size() > 1;
  std::vector<AtScale> out = {{now,
                               analysis.loss_scale == 1
                                   ? "without loss scaling"
                                   : "at loss scale " + answer::scale_text(analysis.loss_scale),
                               other}};
  if (!other) return out;
  Classes then;
  for (const TensorFindings* tensor : gradients) {
    then += tensor->classes_at(analysis.target, *advice.static_log2);
  }
  out.push_back({then,
                 fmt::format("at the {} {}", answer::advised_word(advice),
                             answer::power_text(*advice.static_log2)),
                 false});
  return out;
}

/// Returns a text about the values that no bar shows.
std::string not_drawn(const Analysis& analysis, const Recommendation& advice,
                      const answer::Tensors& gradients, const answer::Series& series) {
  const std::string hidden = answer::hidden_zeros_text(gradients, series);
  return charts::left_out(charts::gradient_window(analysis, advice), series.binades) +
         (hidden.empty() ? "" : " " + hidden);
}

/// Returns one log's caption; an empty string if it has no values to draw.
std::string caption(const Analysis& analysis, const Recommendation& advice,
                    const answer::Tensors& gradients) {
  const answer::Series series = answer::sum(gradients);
  const Interval of = series.counts.finite_nonzero;
  if (of.high == 0) return "";
  std::string lost, overflow;
  bool overflows = false;
  for (const AtScale& at : scales_of(analysis, advice, gradients, series.counts.classes)) {
    lost += (lost.empty() ? "" : ", ") +
            lost_html(at, &Classes::flushed_to_zero, of, "zero", lost.empty() ? "become zero" : "");
    overflow += (overflow.empty() ? "" : ", ") +
                lost_html(at, &Classes::overflow, of, "over", overflow.empty() ? "overflow" : "");
    overflows = overflows || at.classes.overflow.high > 0;
  }
  return fmt::format("{} {}{}.{}", answer::histogram_text(gradients, series, true), lost,
                     overflows ? "; " + overflow : "",
                     not_drawn(analysis, advice, gradients, series));
}

}  // namespace

std::string gradients_html(const Analysis& analysis, const Recommendation& advice) {
  std::string captions;
  for (std::size_t i = 0; i < analysis.logs.size(); ++i) {
    const std::string text =
        caption(analysis, advice, answer::counted_of(answer::of_log(analysis.logs[i])));
    if (text.empty()) continue;
    captions +=
        fmt::format("<div data-log=\"{}\">{}{}</div>\n", i,
                    analysis.logs.size() > 1
                        ? fmt::format("<code>{}</code>: ", answer::html_name(analysis.logs[i].name))
                        : "",
                    text);
  }
  if (captions.empty()) return "";
  return "<figure class=\"picture\"><div class=\"chart\" data-chart=\"gradients\" "
         "data-series=\"gradients\"></div>\n<figcaption class=\"note\">" +
         captions + "</figcaption></figure>\n";
}

}  // namespace halfscope::reports::page
