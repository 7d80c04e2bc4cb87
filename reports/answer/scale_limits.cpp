// SPDX-License-Identifier: Apache-2.0
// Limits of a loss scale, facts that a log hides, and tensors to keep in FP32.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "analyzers/recommend/recommend.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/findings.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/reduction.hpp"
#include "reports/answer/scale.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::Study;
using analyzers::recommend::Footprint;
using analyzers::recommend::KeepInFp32;
using analyzers::recommend::Recommendation;
using analyzers::recommend::SkipBound;
using analyzers::recommend::UnreadSteps;
using analyzers::underflow::Analysis;

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

std::string lost_text(const analyzers::underflow::Share& share) {
  if (share.of.high == 0) return "no values";
  if (share.count.exact() && share.of.exact()) return share_text(share.count, share.of.low);
  return share_range_text(share.low(), share.high());
}

std::optional<Finding> carried_finding(const analyzers::Findings& found) {
  const auto& carried = found.carried_scale;
  if (!carried) return std::nullopt;
  const std::string option = carried->tag.empty()
                                 ? "--recorded-scale S with the loss scale that they carry"
                                 : fmt::format("--recorded-scale '{}', the tag of the loss scale",
                                               log::printable(carried->tag));
  return Finding{
      Severity::breaks,
      fmt::format("The gradients seem to carry the loss scale: multiplied by their step's scale, "
                  "those of {} of {} steps would overflow, and these steps were not skipped.",
                  count_text(carried->steps), count_text(carried->of)),
      fmt::format("Give {}. Without it every magnitude here is too large by the loss scale, and "
                  "every scale too small.",
                  option)};
}

void find_carried_scale(const analyzers::Study& study, std::vector<Finding>& to) {
  if (auto finding = carried_finding(study)) to.push_back(std::move(*finding));
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

std::string flushed_text(const Study& study, const analyzers::underflow::Share& share) {
  const std::string text = lost_text(share);
  return hidden_by_buckets(study.analysis) ? "not identifiable (" + text + ")" : text;
}

std::string why_settings_text(const analyzers::recommend::DynamicAdvice& advice) {
  const policy::Info& policy = policy::info_of(advice.policy);
  if (advice.from_run_scale) {
    return "The scale of the run itself settled there; its gradients are not in the log.";
  }
  if (advice.tried == 0) {
    return fmt::format(
        "This is twice the static scale: an overflow skips one step and halves the scale. {} is "
        "{}'s growth interval.",
        advice.growth_interval, policy.framework.substr(0, policy.framework.find(',')));
  }
  return fmt::format(
      "{} settings of {} were replayed over the recorded steps: {}.", count_text(advice.tried),
      policy.name,
      advice.kept ? "none is worth a change from those it has" : "these lose the fewest gradients");
}

std::string_view name_of(KeepInFp32::Kind kind) {
  using Kind = KeepInFp32::Kind;
  switch (kind) {
    case Kind::tensor: return "tensor";
    case Kind::softmax: return "softmax";
    case Kind::normalization: return "normalization";
    case Kind::loss: return "loss";
    case Kind::logits: return "logits";
    case Kind::reduction: return "reduction";
  }
  return "";
}

std::string why_text(const KeepInFp32& keep, const analyzers::recommend::Recommendation& advice) {
  using Why = KeepInFp32::Why;
  const double found = keep.found;
  const std::string beyond = fmt::format("beyond {}'s largest, {:.5g}", advice.format, keep.limit);
  switch (keep.why) {
    case Why::overflows: return "its values overflow whatever the loss scale";
    case Why::limits_scale:
      return fmt::format("its gradients allow a scale of 2^{} at most, all others 2^{}",
                         keep.highest_log2, keep.highest_log2_without.value_or(0));
    case Why::exponential:
      return fmt::format(
          "its inputs reach {:.3g}: autocast runs it in FP32, and libraries subtract the maximum "
          "first; by hand, e^{:.3g} is {}",
          found, found, beyond);
    case Why::square:
      return fmt::format("its inputs reach {:.3g}, whose square is {}", found, beyond);
    case Why::sum_of_squares:
      return fmt::format("the squares of its inputs add up to {:.3g}, {}", found, beyond);
    case Why::softmax_after:
      return fmt::format(
          "autocast runs a softmax or cross entropy after it in FP32: cast neither by hand; the "
          "last activation reaches {:.3g}, and e^{:.3g} is {}",
          found, found, beyond);
    case Why::sum_overflows:
      return fmt::format("its {}, a sum of {} addends, overflows {} times", sum_name(*keep.sum),
                         count_text(keep.addends),
                         count_text(static_cast<std::uint64_t>(keep.found)));
    case Why::sum_stalls:
      return fmt::format("its {}, a sum of {} addends one after the other, stalls: the error is {}",
                         sum_name(*keep.sum), count_text(keep.addends), share_text(keep.found));
    case Why::half_loss:
    case Why::autocast_loss:
      return fmt::format(
          "{}: at the recommended scale the loss, {:.3g} at its largest, becomes {:.3g}, {}",
          keep.why == Why::half_loss ? "it is held in FP16"
                                     : "autocast keeps it in FP32, do not cast it by hand",
          found, std::ldexp(found, advice.static_log2.value_or(0)), beyond);
  }
  return "";
}

std::string why_text(const Footprint::Odd& odd) {
  std::vector<std::string> extents;
  if (odd.extents != Footprint::Extents::inputs) {
    extents.push_back(plural(odd.shape.at(0), "output"));
  }
  if (odd.extents != Footprint::Extents::outputs) {
    extents.push_back(plural(odd.shape.at(1), "input"));
  }
  return fmt::format("{}: no multiple of 8", fmt::join(extents, " and "));
}

}  // namespace halfscope::reports::answer
