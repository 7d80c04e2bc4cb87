// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/scale.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "halfscope/log/error.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/snippets.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/timeline.hpp"
#include "reports/answer/updates.hpp"

namespace halfscope::reports::answer {

using analyzers::Study;
using analyzers::recommend::NoScale;
using analyzers::recommend::Recommendation;
using analyzers::underflow::Analysis;

namespace {

/// Returns the sentence for formats with FP32's exponent range.
std::string wide_text(const analyzers::Findings& found) {
  const bool bfloat16 = found.analysis.target.name == "bfloat16";
  return fmt::format("{} needs no loss scale: it has the exponent range of FP32.{}",
                     people_say(found.analysis.target.name),
                     found.in_bfloat16 && bfloat16
                         ? " This run computed in BF16; --format fp16 says whether it may use FP16."
                         : "");
}

/// Returns whether a run in BF16 may use the format, and which tensor decides.
std::string may_use_text(const Study& study) {
  const Recommendation& advice = study.advice;
  const std::string scale = advice.static_log2 ? power_text(*advice.static_log2) : "";
  const std::string tensor = code(advice.may_use->tensor);
  const std::string question = fmt::format("May this run, which computed in BF16, use {}? ",
                                           people_say(study.analysis.target.name));
  using Why = analyzers::recommend::MayUse::Why;
  switch (advice.may_use->why) {
    case Why::fits:
      return question + fmt::format(
                            "Yes, at a loss scale of {}{}. {} decides: it has the largest "
                            "gradient.",
                            advice.overflow_not_identifiable ? "at most " : "", scale, tensor);
    case Why::flushed:
      return question + fmt::format(
                            "No. {} decides: too much of it becomes zero at {}, the largest "
                            "loss scale that leaves the headroom.",
                            tensor, scale);
    case Why::overflows:
      return question +
             fmt::format("No. {} decides: it overflows whatever the loss scale.", tensor);
    case Why::no_scale: break;
  }
  return "";
}

/// Returns `words` and "1024 (2^10)"; for a bound "at most 1024 (2^10): infinities hide ...".
std::string scale_or_bound(const Recommendation& advice, std::string_view words = "") {
  const std::string scale = power_text(*advice.static_log2);
  return advice.overflow_not_identifiable
             ? fmt::format("at most {}: {}", scale, hidden_maximum(advice))
             : fmt::format("{}{}", words, scale);
}

/// Returns the result of one scale for each tensor, as in FP8's recipes; empty for wider targets.
std::string each_tensor_text(const Study& study) {
  const auto each = each_scaled(study.analysis);
  if (!each) return "";
  const auto& [all, gradients] = *each;
  return fmt::format(
      "With a scale for each tensor, as FP8's recipes have it, {} of {} fit {} at {:g} dB, and {} "
      "of the gradient values become zero.",
      count_text(all.fit), plural(all.tensors, "tensor"), people_say(study.analysis.target.name),
      study.sufficient_snr_db, share_text(gradients.zero, gradients.values));
}

/// Returns the scale to use for a run that did not fail.
std::string one_scale_text(const Study& study) {
  const Recommendation& advice = study.advice;
  const std::string each = each_tensor_text(study);
  if (each.empty()) return fmt::format("Use a loss scale of {}.", scale_or_bound(advice));
  return fmt::format(
      "{} With one loss scale for all gradients instead, of {}, {} become zero.", each,
      scale_or_bound(advice),
      share_range_text(advice.flushed_at_recommended.low(), advice.flushed_at_recommended.high()));
}

std::string use_text(const Study& study) {
  const Recommendation& advice = study.advice;
  if (advice.serves_nothing()) {
    return fmt::format(
        "No loss scale serves this log: at {}, the largest that is safe, gradients "
        "with {} of the sum of squares (L2) become zero.",
        power_text(*advice.static_log2),
        share_range_text(advice.lost_at_recommended->l2.low, advice.lost_at_recommended->l2.high));
  }
  const bool failed = !study.verdict.beyond_scales.empty() || !study.verdict.broken.empty();
  if (failed && advice.limited_by->nan_at) {
    return fmt::format("If an overflow made the NaN, use a loss scale of at most {}.",
                       power_text(*advice.static_log2));
  }
  if (!failed) return one_scale_text(study);
  return fmt::format("The finite gradients alone would allow a loss scale of {}.",
                     scale_or_bound(advice));
}

/// Returns the first scale for a log without gradients. After a slow start an alarm says it.
std::string own_scale_text(const Study& study) {
  const bool said = std::ranges::any_of(
      study.timelines, [](const auto& log) { return log.slow_start && log.settings; });
  const std::string start =
      said ? ""
           : fmt::format("Start a dynamic loss scale at {}, where the run's own settled. ",
                         scale_text(study.advice.dynamic.front().init));
  return fmt::format("{}How large a static loss scale may be is unknown: {}.", start,
                     no_scale_text(study));
}

/// Returns true if the run computed in FP16 at scale 1, so that many gradients may be zero.
bool lacks_a_scale(const Study& study) {
  const Recommendation& advice = study.advice;
  const bool at_1 = std::ranges::all_of(
      study.run_timelines, [](const auto& log) { return log.scale_most.value_or(0) == 1; });
  return at_1 && study.run_timelines.size() == study.analysis.logs.size() &&
         hidden_underflow(advice) == Hidden::in_zeros && advice.lost_at_1 &&
         advice.lost_at_1->l2.high >= advice.asked.serious_loss;
}

std::string default_text(const Study& study) {
  if (!lacks_a_scale(study)) return std::string(kDefaultFine);
  const auto& share = study.advice.flushed_at_1;
  return fmt::format(
      "This run computes gradients in FP16 without a loss scale: {} of the gradient values may "
      "have "
      "become zero. Use PyTorch's default GradScaler().",
      share_range_text(share.low(), share.high()));
}

/// Returns why there is no static scale, and what to do. Requires all_steps_censored().
std::string unheld_text(const Recommendation& advice) {
  const std::string start =
      advice.dynamic.empty()
          ? ""
          : " Start a dynamic scale at " + scale_text(advice.dynamic.front().init) + ".";
  const std::string scale = power_text(*advice.static_log2);
  const std::string why =
      advice.limited_by->nan_at
          ? fmt::format("{}, and no recorded step is finite, so {} is only an upper bound.",
                        hidden_maximum(advice), scale)
          : upper_bound_text(scale);
  return fmt::format("No static loss scale can be recommended: {}{}", why, start);
}

std::string no_scale_sentence(const Study& study) {
  const bool diverges = study.advice.no_scale == analyzers::recommend::NoScale::diverges;
  return fmt::format("No loss scale {} recommended: {}.", diverges ? "is" : "can be",
                     no_scale_text(study));
}

/// Returns true if the study has only the history of the loss scale.
bool history_alone(const Study& study) {
  return study.advice.no_scale == analyzers::recommend::NoScale::no_gradients &&
         study.advice.roles_found.empty() && study.quantised.empty() && study.peaks.empty() &&
         study.timelines.size() == 1;
}

/// Returns what the history of the scale recommends. Empty if alarms already say it.
std::string history_text(const Study& study) {
  const analyzers::scale_history::TimelineFacts& facts = study.timelines.front();
  using analyzers::scale_history::RunState;
  switch (facts.state) {
    case RunState::not_needed: return "";
    case RunState::normal:
      if (!facts.scale_first) return "";
      return facts.changes.empty()
                 ? fmt::format("Keep the loss scale of {}.", scale_name(*facts.scale_first))
                 : "Keep the settings of the loss scale.";
    case RunState::broken:
      if (facts.scale_last.value_or(1) > 1) return "";  // a smaller scale may help
      [[fallthrough]];
    case RunState::collapsed: return "No loss scale is recommended: the scale is not the cause.";
    default: break;
  }
  return no_scale_sentence(study);
}

std::string no_gradients_text(const Study& study) {
  const Recommendation& advice = study.advice;
  if (advice.roles_found.empty()) {
    return study.quantised.empty()
               ? "the log holds no gradient values"
               : "the log has statistics of FP8, but no magnitudes of gradients";
  }
  return fmt::format(
      "the log holds no gradients (roles found: {}); name them with --role GLOB=weight_grad",
      log::printable(listed(advice.roles_found, 5)));
}

std::string all_zero_text(const Study& study) {
  const std::string zero = "every finite gradient value is zero";
  if (study.in_bfloat16) {
    return zero + ", and BF16 holds nearly all that FP32 does: no loss scale shows more";
  }
  return !hides_underflow(study.analysis)
             ? zero
             : zero +
                   ", and they were computed in 16 bits, where what is too small becomes zero; a "
                   "larger loss scale, or a run in FP32, shows what they are";
}

std::string divergence_text(const Recommendation& advice) {
  if (!advice.limited_by || !advice.highest_log2) return "";
  const analyzers::recommend::Limit& limit = *advice.limited_by;
  return fmt::format(
      "the largest gradient, {}{} at step {}, needs one of {} or less, as gradients do where "
      "training diverges. Precision is not the cause, and no loss scale cures it: lower the "
      "learning rate, warm up, or clip gradients; for the steps before, see halfscope recommend "
      "with --step A:B",
      limit.censored ? "at least " : "", magnitude_text(limit.max_abs), limit.step,
      power_text(*advice.highest_log2));
}

}  // namespace

std::string scale_sentence(const Study& study, bool fine) {
  const Recommendation& advice = study.advice;
  if (advice.may_use && advice.may_use->why != analyzers::recommend::MayUse::Why::no_scale) {
    return may_use_text(study);
  }
  if (!advice.static_log2 && !advice.dynamic.empty()) return own_scale_text(study);
  if (!advice.static_log2 && history_alone(study)) return history_text(study);
  if (!advice.static_log2) {
    return no_scale_sentence(study);
  }
  if (advice.needs_no_scale()) return wide_text(study);
  if (advice.all_steps_censored()) return unheld_text(advice);
  if (fine) {
    const analyzers::recommend::SkipBound& skips = *advice.dynamic.front().replayed;
    return fmt::format("{} In a replay of its {} it skips {}. A static loss scale can be {}.",
                       default_text(study), plural(skips.steps, "step"),
                       count_text(skips.overflowing()), scale_or_bound(advice, "up to "));
  }
  if (!advice.none_needed) return use_text(study);
  return fmt::format("{}. If you use one, it can be {}.",
                     study.broken() ? "The finite gradients of this log need no loss scale"
                                    : "No loss scale is needed",
                     scale_or_bound(advice, "up to "));
}

bool default_fine(const Study& study) {
  const auto& dynamic = study.advice.dynamic;
  if (dynamic.empty() || study.broken()) return false;
  const SumsByKept sums = sums_by_kept(all_tensors(study.analysis), study.analysis.target.format);
  if (loses_share(sums.narrow, sums, study.advice.asked.negligible_share)) return false;
  if (!worth_pasting(study) || study.advice.may_use) return false;
  const analyzers::recommend::DynamicAdvice& first = dynamic.front();
  return first.kept && first.replayed && policy::short_text_of(first.policy) == "torch" &&
         first.replayed->unread == 0 &&
         static_cast<double>(first.replayed->overflowing().high) <=
             study.advice.asked.serious_share * static_cast<double>(first.replayed->steps);
}

std::string half_parameters_text(const Recommendation& advice) {
  if (!advice.highest_if_half_log2) return "";
  return fmt::format(
      "If the parameters themselves are FP16 (model.half()), their gradients are added up in FP16: "
      "then use at most {}.",
      power_text(*advice.highest_if_half_log2));
}

std::string reason_json_text(const Recommendation& advice) {
  if (!advice.no_scale) return missed_text(advice);
  switch (*advice.no_scale) {
    case NoScale::no_gradients: return "no_gradients";
    case NoScale::all_zero: return "all_zero";
    case NoScale::no_finite_values: return "no_finite_values";
    case NoScale::scale_unknown: return "scale_unknown";
    case NoScale::unbounded: return "unbounded";
    case NoScale::diverges: return "diverges";
  }
  return "";
}

std::string no_scale_text(const Study& study) {
  const Recommendation& advice = study.advice;
  if (!advice.no_scale) return "";
  switch (*advice.no_scale) {
    case NoScale::no_gradients: return no_gradients_text(study);
    case NoScale::all_zero: return all_zero_text(study);
    case NoScale::no_finite_values: return "no gradient value is finite, or there are none";
    case NoScale::scale_unknown:
      return "gradients computed in FP16 hold infinities, and the loss scale they were computed at "
             "is unknown, so their size is unknown too; record the scale with the run, or drop "
             "these steps with --step";
    case NoScale::unbounded:
      return "how large the gradients are is unknown: the log has infinities, or values beyond its "
             "buckets, and no bound for the others";
    case NoScale::diverges: return divergence_text(advice);
  }
  return "";
}

std::string missed_text(const Recommendation& advice) {
  if (!advice.misses_target()) return "";
  const bool less_serves = advice.lowest_log2 &&
                           *advice.lowest_log2 <= *advice.highest_log2 + advice.asked.headroom_bits;
  return fmt::format(
      "with {} {} of headroom, more than the target is still flushed to zero in {}{}",
      advice.asked.headroom_bits, advice.asked.headroom_bits == 1 ? "binade" : "binades",
      listed(advice.above_target, 5),
      less_serves ? "; less headroom would allow a scale that serves them" : "");
}

std::string_view advised_word(const Recommendation& advice) {
  if (advice.all_steps_censored()) return "upper bound";
  return advice.beyond_scales ? "allowed" : "recommended";
}

std::string upper_bound_text(std::string_view scale) {
  return fmt::format(
      "infinities hide the largest gradients of every recorded step, so {} is only an upper bound.",
      scale);
}

}  // namespace halfscope::reports::answer
