// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/answer/findings_list.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/ranks_words.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::Study;

namespace found {

std::string format_name(const analyzers::underflow::Analysis& analysis) {
  return people_say(analysis.target.name);
}

std::string some_names(const std::vector<std::string>& names) { return listed_code(names, 3); }

void dimensions(const Study& study, List& to) {
  if (!study.advice.footprint || study.advice.footprint->not_multiples_of_8.empty()) return;
  std::vector<std::string> names;
  for (const auto& odd : study.advice.footprint->not_multiples_of_8) names.push_back(odd.name);
  to.push_back(
      {Severity::note,
       fmt::format("{} a large dimension that is not a multiple of 8: {}.",
                   names.size() == 1 ? "1 tensor has" : plural(names.size(), "tensor") + " have",
                   some_names(names)),
       "On a GPU, pad it: Tensor Cores may use slower kernels otherwise.", Evidence::advice});
}

/// Returns true if the largest usable loss scale is small: gradients need nearly all of the range.
bool short_of_room(const Study& study) {
  constexpr double kSmall = 256;  // a fourth of the smallest initial scale of any framework
  if (study.advice.static_log2) return std::ldexp(1.0, *study.advice.static_log2) < kSmall;
  return std::ranges::any_of(study.timelines, [](const auto& log) {
    return log.scale_last && *log.scale_last < kSmall && log.skipped_in_all.low > 0;
  });
}

void summed_loss(const Study& study, List& to) {
  const auto& sum = study.summed_loss;
  if (!sum || !short_of_room(study)) return;
  to.push_back(
      {Severity::note,
       fmt::format("The loss begins at {}, and a mean of cross-entropies is at most {}. If it is "
                   "a sum over tokens, gradients are more than {} times too large, and {} of "
                   "FP16's binades are lost.",
                   loss_text(sum->loss), sum->kLargestMean,
                   count_text(static_cast<std::uint64_t>(sum->times())), std::ilogb(sum->times())),
       "Then divide it by the number of tokens before the backward pass.", Evidence::advice});
}

void ranks(const Study& study, List& to) {
  for (const auto& log : study.ranks) {
    auto finding = ranks_finding(log);
    if (!finding) continue;
    if (study.analysis.logs.size() > 1) finding->title = code(log.log) + ": " + finding->title;
    to.push_back(std::move(*finding));
  }
}

}  // namespace found

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::breaks: return "breaks";
    case Severity::serious: return "serious";
    case Severity::warning: return "warning";
    case Severity::note: break;
  }
  return "note";
}

std::string_view name_of(Evidence evidence) {
  switch (evidence) {
    case Evidence::scales: return "scales";
    case Evidence::timeline: return "timeline";
    case Evidence::updates: return "updates";
    case Evidence::overflow: return "overflow";
    case Evidence::policies: return "policies";
    case Evidence::formats: return "formats";
    case Evidence::quantised: return "fp8";
    case Evidence::ranks: return "ranks";
    case Evidence::reductions: return "sums";
    case Evidence::advice: break;
  }
  return "advice";
}

std::string text_of(const Finding& finding) {
  return finding.title + (finding.action.empty() ? "" : " ") + finding.action;
}

std::vector<Finding> findings(const Study& study) {
  std::vector<Finding> out;
  for (const auto part :
       {found::carried,       found::adam,           found::alarms,        found::collapse,
        found::lasting,       found::in_model,       found::lost_updates,  found::quantised,
        found::without_cure,  found::ranks,          found::shifts,        found::scores,
        found::overflow,      found::policies,       found::underflow,     found::no_single_scale,
        found::unusual_scale, found::rounding_noise, found::thin_headroom, found::unknown,
        found::summed_loss,   found::dimensions,     found::formats,       found::delayed_scaling,
        found::mx_gradients}) {
    part(study, out);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
  return out;
}

}  // namespace halfscope::reports::answer
