// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/summary.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "halfscope/log/error.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::Study;
using analyzers::recommend::Recommendation;
using analyzers::recommend::UnreadSteps;
using analyzers::underflow::Analysis;

std::string lost_text(const analyzers::underflow::Share& share) {
  if (share.of.high == 0) return "no values";
  if (share.count.exact() && share.of.exact()) return share_text(share.count, share.of.low);
  return share_range_text(share.low(), share.high());
}

std::optional<CarriedWords> carried_words(const analyzers::Findings& found) {
  const auto& carried = found.carried_scale;
  if (!carried) return std::nullopt;
  const std::string option = carried->tag.empty()
                                 ? "--recorded-scale S with the loss scale that they carry"
                                 : fmt::format("--recorded-scale '{}', the tag of the loss scale",
                                               log::printable(carried->tag));
  return CarriedWords{
      fmt::format("The gradients seem to carry the loss scale: multiplied by their step's scale, "
                  "those of {} of {} steps would overflow, and these steps were not skipped.",
                  count_text(carried->steps), count_text(carried->of)),
      fmt::format("Give {}. Without it every magnitude here is too large by the loss scale, and "
                  "every scale too small.",
                  option)};
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

std::string nan_limit_text(const analyzers::recommend::Limit& limit) {
  return fmt::format("NaN at loss scale {} is taken as overflow", scale_text(*limit.nan_at));
}

namespace {

/// For example "activation gradients were read at 4 of 61 steps; magnitudes_every=1 ...".
std::string unread_text(const UnreadSteps& unread) {
  const bool activations = unread.role == log::Role::activation_grad;
  return fmt::format("{} gradients were read at {} of {}; {}",
                     activations ? "activation" : "weight", count_text(unread.of - unread.lacking),
                     plural(unread.of, "step"),
                     activations && unread.by_recorder ? "magnitudes_every=1 reads them all"
                                                       : "record them at every step");
}

}  // namespace

std::string hidden_maximum(const Recommendation& advice) {
  if (advice.limited_by && advice.limited_by->nan_at) {
    return fmt::format("{} because nothing else explains it (step {})",
                       nan_limit_text(*advice.limited_by), advice.limited_by->step);
  }
  if (advice.clipped) {
    return "gradients were clipped before they were recorded, so backward may have made larger "
           "ones";
  }
  if (advice.incomplete_steps != 0) return "the log does not have all gradients";
  if (advice.unread.lacking != 0) return unread_text(advice.unread);
  if (advice.limited_by && advice.limited_by->skipped_at) {
    return "the log does not show how large the gradients of a skipped step were";
  }
  return advice.nonfinite_steps.empty()
             ? "infinities were dropped from the log, so gradients may have been larger"
             : "infinities hide how large gradients were";
}

std::string_view no_cure_text(const analyzers::overflow::OverflowEvent& event) {
  return event.cause == analyzers::overflow::Cause::at_scale_1 ? "no loss scale of 1 or more cures"
                                                               : "no loss scale cures";
}

bool hides_underflow(const Analysis& analysis) {
  return std::ranges::any_of(analysis.tensors(), [](const analyzers::underflow::TensorFindings& t) {
    return t.loss_scaled && !t.underflow_identifiable && !t.hidden_by_buckets &&
           t.counts.zero.high != 0;
  });
}

bool hidden_by_buckets(const Analysis& analysis) {
  return std::ranges::any_of(analysis.tensors(), [](const analyzers::underflow::TensorFindings& t) {
    return t.loss_scaled && t.hidden_by_buckets;
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
