// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_answer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cli/terminal/text_tensors.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/first_words.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/no_scale.hpp"
#include "reports/answer/summary.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {
namespace {

using analyzers::Study;
using analyzers::recommend::Recommendation;
namespace text = reports::answer;

std::string broken_text(const Study& study) {
  const Recommendation& r = study.advice;
  std::string lines = text::carried_text(study);
  if (!lines.empty()) lines += "\n";
  lines += text::first_text(study);
  if (const analyzers::overflow::OverflowEvent* const end = study.lasting_first()) {
    lines += fmt::format(
        "From step {} to the last, {}, there are infinities or NaN that {}, first "
        "in {}.\n",
        end->step, end->last_step, text::no_cure_text(*end), log::printable(end->tensor));
  }
  if (r.nan_in_model) {
    lines += fmt::format("{} in the model from step {}, first in {}: no loss scale helps.\n",
                         r.nan_in_model->nan ? "NaN" : "Infinity", r.nan_in_model->step,
                         log::printable(r.nan_in_model->tensor));
  }
  if (!r.overflow_without_cure.empty()) {
    lines += fmt::format("{} {} {} whatever the loss scale: keep {} in FP32 or bfloat16.\n",
                         text::listed_names(r.overflow_without_cure, 5),
                         r.overflow_without_cure.size() == 1 ? "overflows" : "overflow",
                         text::people_say(study.analysis.target.name),
                         r.overflow_without_cure.size() == 1 ? "it" : "them");
  }
  return lines;
}

std::string scale_line(const Study& study) {
  const Recommendation& r = study.advice;
  const std::string may_use = text::may_use_text(study);
  if (!may_use.empty()) return may_use;
  if (!r.static_log2) {
    return fmt::format("{}: {}.", text::no_scale_title(r), text::no_scale_text(study));
  }
  if (r.needs_no_scale()) return text::wide_text(study);
  if (r.no_step_held()) return text::unheld_text(r);
  const std::string scale = text::power_text(*r.static_log2);
  const std::string hidden =
      r.overflow_not_identifiable ? fmt::format(": {}", text::hidden_maximum(r)) : "";
  if (r.none_needed) {
    return fmt::format(
        "{}; if you use one, {} {}{}.",
        text::broken(study) ? "Finite gradients need no loss scale" : "No loss scale is needed",
        hidden.empty() ? "up to" : "at most", scale, hidden);
  }
  const bool failed = study.overflow.lasting() != nullptr || text::collapse_words(study) ||
                      text::ends_broken(study);
  return fmt::format("{} a loss scale of {}{}{}.",
                     failed ? "Its finite gradients would take" : "Use",
                     hidden.empty() ? "" : "at most ", scale, hidden);
}

/// What underflow does, by number and by weight.
std::string zeros_text(const Study& study, double target) {
  const Recommendation& r = study.advice;
  if (text::hidden_underflow(r) == text::Hidden::no_counts) return "";
  const auto both = [&](const analyzers::underflow::Share& share,
                        const std::optional<MassShare>& mass) -> std::string {
    const std::string count = text::flushed_text(study, share);
    if (!mass) return count;
    return fmt::format("{} ({} of their L1 norm)", count,
                       text::share_range_text(mass->l1.low, mass->l1.high));
  };
  std::string line = fmt::format("Gradients that become zero: {} without a scale, {} at {}.\n",
                                 both(r.flushed_at_1, r.lost_at_1),
                                 both(r.flushed_at_recommended, r.lost_at_recommended),
                                 text::power_text(*r.static_log2));
  if (r.lowest_log2 && *r.lowest_log2 <= *r.highest_log2) {
    line += fmt::format("Scales from {} to {} keep that at {} or less in every tensor.\n",
                        text::power_text(*r.lowest_log2), text::power_text(*r.highest_log2),
                        text::share_text(target));
  }
  return line;
}

std::string limit_text(const Recommendation& r) {
  const analyzers::recommend::Limit& limit = *r.limited_by;
  if (limit.skipped_at) {
    return fmt::format(
        "Limited by gradients of {} or more: {}. That leaves at most {:.1f} binades below "
        "overflow.\n",
        text::magnitude_text(limit.max_abs), text::skipped_limit_text(limit), r.headroom_bits);
  }
  const std::string name =
      limit.from_scalars ? fmt::format("some tensor of role {} (known by the step's scalars alone)",
                                       log::printable(limit.name))
                         : log::printable(limit.name);
  return fmt::format(
      "Limited by {} at step {}: its largest magnitude is {}{}, which leaves {}{:.1f} binades "
      "below "
      "overflow.\n",
      name, limit.step,
      limit.censored  ? "at least "
      : limit.bounded ? "at most "
                      : "",
      text::magnitude_text(limit.max_abs), limit.censored ? "at most " : "", r.headroom_bits);
}

/// What the log cannot tell of large and small gradients.
std::string hidden_text(const Study& study) {
  const Recommendation& r = study.advice;
  std::string lines;
  if (r.overflow_not_identifiable) {
    lines += r.clipped ? "To see how large gradients were, record them before clipping, as "
                         "halfscope.torch.Recorder does.\n"
             : r.incomplete_steps != 0
                 ? "To see how large gradients were, add parameters to the optimizer before "
                   "backward.\n"
                 : "To see how large gradients were, record a run in FP32 or BF16, or one at a "
                   "smaller loss scale.\n";
  }
  switch (text::hidden_underflow(r)) {
    case text::Hidden::no: return lines;
    case text::Hidden::in_buckets: return lines + text::lowest_in_buckets(study) + "\n";
    case text::Hidden::no_counts:
      return lines +
             "What becomes zero is not identifiable from this log: it has magnitudes "
             "without counts.\n";
    case text::Hidden::in_zeros: break;
  }
  const auto hiding = std::find_if(
      study.analysis.tensors().begin(), study.analysis.tensors().end(),
      [](const auto& t) { return t.counted && !t.underflow_identifiable && t.counts.total != 0; });
  const std::string dtype =
      hiding == study.analysis.tensors().end() ? "16 bits" : computed_text(*hiding);
  return lines + fmt::format(
                     "Some gradients were computed in {}: what underflowed there is already zero, "
                     "so the shares are bounds and no lowest scale can be given. Record {} run to "
                     "see it.\n",
                     dtype, dtype == "FP16" ? "an FP32 or BF16" : "an FP32");
}

}  // namespace

std::string answer_text(const Study& study) {
  const std::string line = scale_line(study) + "\n";
  const bool leads = study.advice.may_use && !text::ends_broken(study);
  return leads ? line + broken_text(study) : broken_text(study) + line;
}

std::string evidence_text(const Study& study, double target) {
  const Recommendation& r = study.advice;
  if (!r.static_log2 || study.advice.needs_no_scale()) return "";
  std::string text = zeros_text(study, target) + limit_text(r);
  const std::string half = text::half_parameters_text(r);
  if (!half.empty()) text += half + "\n";
  const std::string missed = text::missed_text(r);
  if (!missed.empty()) text += fmt::format("Even so, {}.\n", log::printable(missed));
  if (*r.static_log2 == analyzers::underflow::kLastLog2Scale && !r.above_target.empty()) {
    text += fmt::format(
        "2^{} is the largest scale considered: these gradients are too small for FP16 at any "
        "scale in use.\n",
        analyzers::underflow::kLastLog2Scale);
  }
  return text + hidden_text(study);
}

}  // namespace halfscope::cli::terminal
