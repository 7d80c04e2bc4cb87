// SPDX-License-Identifier: Apache-2.0
#include "reports/page/summary_html.hpp"

#include <fmt/format.h>

#include "reports/answer/first_words.hpp"
#include "reports/answer/no_scale.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/summary.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/timeline_words.hpp"
#include "reports/answer/update_sums.hpp"

namespace halfscope::reports::page {

using analyzers::Study;
using analyzers::recommend::Recommendation;
using analyzers::underflow::Analysis;
using answer::Hidden;

namespace {

/// Names listed in a sentence before "and N more".
constexpr std::size_t kNamesShown = 5;

std::string names_html(const std::vector<std::string>& names) {
  std::vector<std::string> words;
  for (const std::string& name : names)
    words.push_back("<code>" + answer::html_name(name) + "</code>");
  return answer::listed(words, kNamesShown);
}

std::string tile(std::string_view kind, std::string_view title, std::string_view value,
                 std::string_view detail) {
  return fmt::format(
      "<div class=\"tile {}\"><h3>{}</h3><p class=\"value\">{}</p><p "
      "class=\"detail\">{}</p></div>\n",
      kind, title, value, detail);
}

std::string lost_detail(const analyzers::underflow::Share& share) {
  return fmt::format("{} of {} nonzero gradient values become zero",
                     answer::count_text(share.count), answer::count_text(share.of));
}

std::string limit_html(const Analysis& analysis, const analyzers::recommend::Limit& limit) {
  if (limit.skipped_at) {
    return "at least; " + answer::html_escape(answer::skipped_limit_text(limit));
  }
  return fmt::format(
      "{} <code>{}</code> at step {}{}",
      limit.censored  ? "at least; an infinity in"
      : limit.bounded ? "the largest gradient value, at most:"
                      : (limit.from_scalars ? "the largest gradient value of all steps, in"
                                            : "the largest gradient value:"),
      answer::html_name(limit.name), limit.step,
      analysis.logs.size() > 1 ? fmt::format(" of <code>{}</code>", answer::html_name(limit.log))
                               : "");
}

std::string lost_tile(const Analysis& analysis, const char* kind, const std::string& title,
                      const analyzers::underflow::Share& share) {
  if (!answer::hidden_by_buckets(analysis)) {
    return tile(kind, title, answer::lost_text(share), lost_detail(share));
  }
  return tile("limit", title, "not identifiable",
              answer::html_escape(answer::lost_text(share)) + ": " + lost_detail(share));
}

std::string tiles_html(const Study& study) {
  const Analysis& analysis = study.analysis;
  const Recommendation& advice = study.advice;
  if (study.advice.needs_no_scale()) {
    return "<div class=\"tiles\">\n" +
           tile("use", "Loss scale to use", "none", "FP32's exponent range") + "</div>\n";
  }
  if (advice.no_scale == analyzers::recommend::NoScale::diverges)
    return "";  // what is lost is not the trouble
  std::string out = "<div class=\"tiles\">\n";
  if (advice.flushed_at_1.of.high > 0) {
    const char* kind = advice.flushed_at_1.count.high == 0 ? "kept" : "lost";
    out += lost_tile(analysis, kind, "Lost without loss scaling", advice.flushed_at_1);
  }
  if (!advice.static_log2) return advice.flushed_at_1.of.high > 0 ? out + "</div>\n" : "";
  const std::string scale = answer::power_text(*advice.static_log2);
  const char* const kind = !advice.above_target.empty()        ? "lost"
                           : advice.underflow_not_identifiable ? "limit"  // bounds are no good news
                                                               : "kept";
  if (advice.flushed_at_recommended.of.high > 0) {
    out += lost_tile(analysis, kind, "Lost at loss scale " + scale, advice.flushed_at_recommended);
  }
  if (advice.no_step_held()) return out + "</div>\n";
  const std::string half = answer::half_parameters_text(advice);
  out +=
      tile("use", advice.none_needed ? "Loss scale, if you use one" : "Loss scale to use",
           (advice.overflow_not_identifiable ? "at most " : "") + scale,
           fmt::format("the largest power of two that keeps {} free below overflow{}{}",
                       answer::plural(static_cast<std::uint64_t>(advice.headroom_asked), "binade"),
                       half.empty() ? "" : ". ", answer::html_escape(half)));
  if (advice.limited_by) {
    out += tile("limit", "What limits it", answer::magnitude_text(advice.limited_by->max_abs),
                limit_html(analysis, *advice.limited_by));
  }
  return out + "</div>\n";
}

/// What people call a format.
std::string format_html(const Analysis& analysis) {
  return analysis.target.name == "binary16" ? "FP16" : answer::html_escape(analysis.target.name);
}

/// What no loss scale helps against; it goes before all else.
std::string broken_html(const Study& study) {
  const Recommendation& advice = study.advice;
  std::string out;
  const std::string carried = answer::carried_text(study);
  if (!carried.empty()) out += "<strong>" + answer::html_escape(carried) + "</strong> ";
  for (const answer::AlarmWords& alarm : answer::first_words(study)) {
    out += fmt::format("<strong>{}</strong> {} ", answer::html_escape(alarm.what),
                       answer::html_escape(alarm.action));
  }
  if (const auto collapse = answer::collapse_words(study)) {
    out += "<strong>" + answer::html_escape(collapse->what) + "</strong> ";
  }
  if (const analyzers::overflow::OverflowEvent* const end = study.lasting_first()) {
    out += fmt::format(
        "<strong>From step {} to the last, {},</strong> there are infinities or NaN that {}, first "
        "in <code>{}</code>. ",
        end->step, end->last_step, answer::no_cure_text(*end), answer::html_name(end->tensor));
  }
  if (advice.nan_in_model) {
    const analyzers::recommend::NanInModel& first = *advice.nan_in_model;
    out += fmt::format(
        "<strong>{} in the model from step {}</strong>, first in <code>{}</code>: no loss scale "
        "helps. ",
        first.nan ? "NaN" : "Infinity", first.step, answer::html_name(first.tensor));
  }
  if (!advice.overflow_without_cure.empty()) {
    const bool one = advice.overflow_without_cure.size() == 1;
    out += fmt::format("{} {} {} whatever the loss scale: keep {} in FP32 or bfloat16. ",
                       names_html(advice.overflow_without_cure), one ? "overflows" : "overflow",
                       format_html(study.analysis), one ? "it" : "them");
  }
  return out;
}

/// The scale where some tensors hide what they lost.
std::string hidden_html(const Study& study, const std::string& scale) {
  const Recommendation& advice = study.advice;
  std::string out = answer::collapse_words(study) || answer::ends_broken(study)
                        ? "Its finite gradients would take a loss scale of "
                        : "Use a loss scale of ";
  out += advice.overflow_not_identifiable
             ? fmt::format("at most {}: {}. ", scale, answer::hidden_maximum(advice))
             : scale + ". ";
  const Hidden hidden = answer::hidden_underflow(advice);
  if (hidden == Hidden::in_buckets) {
    return out + answer::html_escape(answer::lowest_in_buckets(study));
  }
  if (hidden == Hidden::no_counts) {
    return out +
           "What becomes zero is not identifiable from this log: it has magnitudes without "
           "counts.";
  }
  return out +
         "How much is lost cannot be told from values that were computed in 16 bits: a zero may be "
         "a value that was flushed. An FP32 run shows both.";
}

std::string scale_html(const Study& study) {
  const Analysis& analysis = study.analysis;
  const Recommendation& advice = study.advice;
  const std::string may_use = answer::may_use_text(study);
  if (!may_use.empty()) return answer::html_escape(may_use);
  if (!advice.static_log2) {
    return fmt::format("<strong>{}</strong>: {}.", answer::no_scale_title(advice),
                       answer::html_escape(answer::no_scale_text(study)));
  }
  const std::string format = format_html(analysis);
  if (study.advice.needs_no_scale()) return answer::html_escape(answer::wide_text(study));
  if (advice.no_step_held()) {
    return answer::html_escape(answer::unheld_text(advice));
  }
  const std::string scale = "<strong>" + answer::power_text(*advice.static_log2) + "</strong>";
  const auto& now = advice.flushed_at_1;
  if (advice.underflow_not_identifiable) return hidden_html(study, scale);
  if (*advice.static_log2 < 0) {
    return fmt::format(
        "The largest gradients leave no headroom at scale 1. A loss scale of {}{} keeps them below "
        "overflow; {} turns <strong>{}</strong> of the nonzero gradient values to zero at it.",
        advice.overflow_not_identifiable ? "at most " : "", scale, format,
        answer::lost_text(advice.flushed_at_recommended));
  }
  if (advice.none_needed) {
    return fmt::format(
        "<strong>{}</strong>: without one {} turns {} of the nonzero gradient values to zero. If "
        "you use one, {} {}{}.",
        answer::broken(study) ? "Finite gradients need no loss scale" : "No loss scale is needed",
        format, answer::lost_text(now), advice.overflow_not_identifiable ? "at most" : "up to",
        scale,
        advice.overflow_not_identifiable ? fmt::format(": {}", answer::hidden_maximum(advice))
                                         : "");
  }
  return fmt::format(
      "Without loss scaling, {} turns <strong>{}</strong> of the nonzero gradient values to zero. "
      "A loss scale of {}{} leaves <strong>{}</strong>{}.",
      format, answer::lost_text(now), advice.overflow_not_identifiable ? "at most " : "", scale,
      answer::lost_text(advice.flushed_at_recommended),
      advice.overflow_not_identifiable ? fmt::format("; {}", answer::hidden_maximum(advice)) : "");
}

}  // namespace

std::string summary_html(const Study& study) {
  const std::string scale = scale_html(study);
  const std::string broken = broken_html(study);
  const bool leads = study.advice.may_use && !answer::ends_broken(study);
  const std::string kept = answer::lost_updates_first(study)
                               ? "<strong>" + answer::kept_narrow_text(study) + "</strong> "
                               : "";
  const std::string fine = answer::default_fine_text(study);
  return "<p class=\"answer\">" + kept + (leads ? scale + " " + broken : broken + scale) +
         (fine.empty() ? "" : " " + answer::html_escape(fine)) + "</p>\n" + tiles_html(study);
}

}  // namespace halfscope::reports::page
