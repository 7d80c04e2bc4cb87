// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/no_scale.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "halfscope/log/error.hpp"
#include "reports/answer/summary.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::Study;
using analyzers::recommend::NoScale;
using analyzers::recommend::Recommendation;
using analyzers::underflow::Analysis;

namespace {

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

std::string_view no_scale_title(const Recommendation& advice) {
  return advice.no_scale == NoScale::diverges ? "No loss scale is recommended"
                                              : "No loss scale can be recommended";
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

}  // namespace halfscope::reports::answer
