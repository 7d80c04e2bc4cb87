// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/summary.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analyzers/scale_history/carried_scale.hpp"
#include "analyzers/underflow/provenance.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/first_words.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/snippets.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/update_sums.hpp"

namespace halfscope::reports::answer {

using analyzers::Study;
using analyzers::recommend::Recommendation;
using analyzers::underflow::Analysis;

std::string lost_text(const analyzers::underflow::Share& share) {
  if (share.of.high == 0) return "no values";
  if (share.count.exact() && share.of.exact()) return share_text(share.count, share.of.low);
  return share_range_text(share.low(), share.high());
}

std::string carried_text(const analyzers::Findings& found) {
  const auto& carried = found.carried_scale;
  if (!carried) return "";
  const std::string option = carried->tag.empty()
                                 ? "--recorded-scale S with the loss scale that they carry"
                                 : fmt::format("--recorded-scale '{}', the tag of the loss scale",
                                               log::printable(carried->tag));
  return fmt::format(
      "The gradients seem to carry the loss scale: times the scale of their step those of {} of {} "
      "steps would overflow, and these were not skipped. Give {}. Without it every magnitude here "
      "is too large by the loss scale, and every scale too small.",
      count_text(carried->steps), count_text(carried->of), option);
}

std::string wide_text(const analyzers::Findings& found) {
  const Analysis& analysis = found.analysis;
  const bool bfloat16 = analysis.target.name == "bfloat16";
  const std::string format = bfloat16 ? "BF16" : people_say(analysis.target.name);
  const std::string own = found.in_bfloat16 && bfloat16
                              ? " This run computed in BF16; --format fp16 says whether it may use "
                                "FP16."
                              : "";
  return fmt::format("{} needs no loss scale: it has the exponent range of FP32.{}", format, own);
}

std::string may_use_text(const Study& study) {
  const Recommendation& advice = study.advice;
  if (!advice.may_use) return "";
  const std::string format = people_say(study.analysis.target.name);
  const std::string scale = advice.static_log2 ? power_text(*advice.static_log2) : "";
  const std::string tensor = log::printable(advice.may_use->tensor);
  const std::string question =
      fmt::format("May this run, which computed in BF16, use {}? ", format);
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

std::string skipped_limit_text(const analyzers::recommend::Limit& limit) {
  const std::string scale = scale_text(*limit.skipped_at);
  if (limit.numbered) return fmt::format("a step was skipped at loss scale {} or less", scale);
  if (!limit.first_step) {
    return fmt::format("step {} was skipped at loss scale {}", limit.step, scale);
  }
  return fmt::format("one of steps {} to {} was skipped at loss scale {} or less",
                     *limit.first_step, limit.step, scale);
}

std::string_view hidden_maximum(const Recommendation& advice) {
  if (advice.clipped) {
    return "gradients were clipped before they were recorded, so that backward may have made "
           "larger ones";
  }
  if (advice.incomplete_steps != 0) return "the log does not have all gradients";
  if (advice.limited_by && advice.limited_by->skipped_at) {
    return "how large the gradients of a skipped step were is not in the log";
  }
  return advice.nonfinite_steps.empty()
             ? "infinities were left out of the log, so that gradients may have been larger"
             : "infinities hide how large gradients were";
}

std::string half_parameters_text(const Recommendation& advice) {
  if (!advice.highest_if_half_log2) return "";
  return fmt::format(
      "If the parameters themselves are FP16 (model.half()), their gradients are added up in FP16: "
      "then use at most {}.",
      power_text(*advice.highest_if_half_log2));
}

std::string default_fine_text(const Study& study) {
  const auto& dynamic = study.advice.dynamic;
  if (dynamic.empty() || broken(study) || !kept_narrow_text(study).empty()) return "";
  if (!worth_pasting(study)) return "";
  const analyzers::recommend::DynamicAdvice& first = dynamic.front();
  const bool fine = first.kept && first.replayed &&
                    policy::short_text_of(first.policy) == "torch" &&
                    first.replayed->skipped.high * 20 <= first.replayed->steps;
  return fine ? "PyTorch's default GradScaler() is fine for this run: change nothing." : "";
}

std::string_view no_cure_text(const analyzers::overflow::OverflowEvent& event) {
  return event.cause == analyzers::overflow::Cause::at_scale_1 ? "no loss scale of 1 or more cures"
                                                               : "no loss scale cures";
}

bool hides_underflow(const Analysis& analysis) {
  return std::ranges::any_of(analysis.tensors(), [](const analyzers::underflow::TensorFindings& t) {
    return t.counted && !t.underflow_identifiable && !t.hidden_by_buckets &&
           t.counts.zero.high != 0;
  });
}

bool hidden_by_buckets(const Analysis& analysis) {
  return std::ranges::any_of(analysis.tensors(), [](const analyzers::underflow::TensorFindings& t) {
    return t.counted && t.hidden_by_buckets;
  });
}

Hidden hidden_underflow(const Recommendation& advice) {
  if (!advice.underflow_not_identifiable) return Hidden::no;
  if (advice.lowest_at_least_log2) return Hidden::in_buckets;
  return advice.flushed_at_1.of.high == 0 ? Hidden::no_counts : Hidden::in_zeros;
}

std::string lowest_in_buckets(const Study& study) {
  const Recommendation& advice = study.advice;
  const std::string format = people_say(study.analysis.target.name);
  std::string out = "The lowest scale that keeps enough is not identifiable from this log: it is ";
  out += power_text(*advice.lowest_at_least_log2) + " or more";
  if (hidden_by_buckets(study.analysis)) {
    return out + fmt::format(", but buckets hold zero and values that {} keeps.", format);
  }
  if (!advice.lowest_if_zeros_log2) return out + ".";
  return out + fmt::format(", and {} if the values that it does not tell from zero are zeros.",
                           power_text(*advice.lowest_if_zeros_log2));
}

std::string flushed_text(const Study& study, const analyzers::underflow::Share& share) {
  const std::string text = lost_text(share);
  return hidden_by_buckets(study.analysis) ? "not identifiable (" + text + ")" : text;
}

}  // namespace halfscope::reports::answer
