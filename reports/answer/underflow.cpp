// SPDX-License-Identifier: Apache-2.0
// Findings on gradients that become zero, and on underflow that the log does not show.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reports/answer/findings.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/scale.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::Study;
using analyzers::recommend::KeepInFp32;
using analyzers::recommend::LayerScale;
using analyzers::recommend::Recommendation;
using analyzers::underflow::Share;

namespace {

Severity severity_of(double share, const analyzers::underflow::RecommendOptions& asked) {
  if (share < asked.negligible_loss) return Severity::note;
  return share >= asked.serious_loss ? Severity::serious : Severity::warning;
}

Share flushed_now(const Study& study) {
  Share out;
  for (const auto& tensor : study.analysis.tensors()) {
    if (!tensor.loss_scaled) continue;
    out.count += tensor.counts.classes.flushed_to_zero;
    out.of += tensor.counts.finite_nonzero;
  }
  return study.analysis.loss_scale == 1 ? study.advice.flushed_at_1 : out;
}

std::string cure(const Study& study) {
  const Recommendation& advice = study.advice;
  if (!advice.static_log2 || advice.all_steps_censored()) return "";
  if (std::exp2(*advice.static_log2) == study.analysis.loss_scale) return "";
  return fmt::format(
      "At a loss scale of {} it is {} of the values.", power_text(*advice.static_log2),
      share_range_text(advice.flushed_at_recommended.low(), advice.flushed_at_recommended.high()));
}

std::string title_of(const Study& study, const Share& now) {
  const bool one = study.analysis.loss_scale == 1;
  const std::string where =
      one ? "Without a loss scale" : "At loss scale " + scale_text(study.analysis.loss_scale);
  const std::string share = share_range_text(now.low(), now.high()) + " of the gradient values";
  return hidden_by_buckets(study.analysis)
             ? fmt::format("{}, what becomes zero is not identifiable: {}", where, share)
             : fmt::format("{}, {} become zero in {}", where, share, format_name(study.analysis));
}

std::string layers_title(const std::vector<std::string>& served,
                         const std::vector<std::string>& unserved) {
  std::string own, none;
  if (!served.empty()) {
    own = fmt::format("{} {} a scale of {} own ({})", plural(served.size(), "layer"),
                      served.size() == 1 ? "needs" : "need", served.size() == 1 ? "its" : "their",
                      listed_code(served, 3));
  }
  if (!unserved.empty()) {
    none = fmt::format("no scale at all reaches the target in {} ({})",
                       plural(unserved.size(), "layer"), listed_code(unserved, 3));
  }
  return fmt::format("No single loss scale serves every tensor: {}{}{}.", own,
                     own.empty() || none.empty() ? "" : "; ", none);
}

/// Returns the tensor that would raise the scale most if it were in FP32; null if none would.
const KeepInFp32* best_gain(const Recommendation& advice) {
  const auto best = std::ranges::max_element(advice.keep_in_fp32, {}, &KeepInFp32::binades_gained);
  return best != advice.keep_in_fp32.end() && best->binades_gained > 0 ? &*best : nullptr;
}

std::string gain_text(const KeepInFp32* gain) {
  if (gain == nullptr) return "";
  return fmt::format("Keep {} in FP32 and the scale can rise by {}.", code(gain->name),
                     plural(static_cast<std::uint64_t>(gain->binades_gained), "binade"));
}

void layers(const Recommendation& advice, const std::string& keep, std::vector<Finding>& to) {
  std::vector<std::string> served, unserved;
  for (const LayerScale& layer : advice.per_layer) {
    (layer.served() ? served : unserved).push_back(layer.layer);
  }
  const std::string scale = served.empty() ? "Keep what matters of them in FP32."
                                           : "Scale layer by layer, or keep them in FP32.";
  to.push_back({Severity::warning, layers_title(served, unserved), keep.empty() ? scale : keep});
}

/// Returns the lowest scale that the buckets of the log allow. Precondition: hidden_underflow() is
/// in_buckets.
std::string lowest_in_buckets(const Study& study) {
  const Recommendation& advice = study.advice;
  const std::string format = format_name(study.analysis);
  std::string out = "The lowest scale that keeps enough is not identifiable from this log: it is ";
  out += power_text(*advice.lowest_at_least_log2) + " or more";
  if (hidden_by_buckets(study.analysis)) {
    return out + fmt::format(", but buckets hold zero and values that {} keeps.", format);
  }
  if (!advice.lowest_if_zeros_log2) return out + ".";
  return out + fmt::format(", and {} if the values that it does not tell from zero are zeros.",
                           power_text(*advice.lowest_if_zeros_log2));
}

/// Returns the format that computed the first tensor whose underflow is hidden.
std::string hiding_format(const Study& study) {
  const auto tensors = study.analysis.tensors();
  const auto hiding = std::ranges::find_if(tensors, [](const auto& t) {
    return t.loss_scaled && !t.underflow_identifiable && t.counts.total != 0;
  });
  return hiding == tensors.end() ? "16 bits" : computed_text(*hiding);
}

/// Returns true if a scale is recommended, so that its limits are of interest.
bool has_limits(const Recommendation& advice) {
  return advice.static_log2 && !advice.needs_no_scale();
}

}  // namespace

void find_underflow(const Study& study, std::vector<Finding>& to) {
  const Share now = flushed_now(study);
  const auto& asked = study.advice.asked;
  if (now.of.high == 0 || now.high() < asked.negligible_share || study.advice.needs_no_scale()) {
    return;
  }
  const Hidden hidden = hidden_underflow(study.advice);
  if (hidden == Hidden::in_zeros && now.low() < asked.negligible_share)
    return;  // find_unknown_underflow() says it
  std::string title = title_of(study, now), action = cure(study);
  // A loss that is only possible is not a serious finding.
  const bool bounds = hidden == Hidden::in_buckets;
  Severity severity = bounds ? std::max(Severity::warning, severity_of(now.low(), asked))
                             : severity_of(now.high(), asked);
  if (const std::optional<MassShare>& mass = study.lost) {
    // Values below 2^-27 were 31 % of all in Multibox SSD and did not matter: Micikevicius et al.,
    // Mixed Precision Training, ICLR 2018, 3.2.
    severity =
        std::max(bounds ? Severity::warning : Severity::serious, severity_of(mass->l2.high, asked));
    const auto& worst = study.worst_lost;
    const bool harmed = worst && worst->l2.low >= asked.harmed_tensor;
    if (harmed) severity = std::min(severity, Severity::warning);
    const bool little = severity == Severity::note;
    title +=
        fmt::format("{} {} of the gradients' sum of squares (L2){}",
                    mass->l2.high < asked.serious_loss ? ", but these hold only" : ". These hold",
                    share_range_text(mass->l2.low, mass->l2.high),
                    little ? ": too little to affect training" : "");
    if (harmed) {
      title += fmt::format("; {} loses {} of its own sum of squares", code(worst->tensor),
                           share_range_text(worst->l2.low, worst->l2.high));
    }
  }
  to.push_back({severity, title + ".", action});
}

void find_no_single_scale(const Study& study, std::vector<Finding>& to) {
  const Recommendation& advice = study.advice;
  if (advice.harmless()) return;
  const KeepInFp32* const gain = best_gain(advice);
  const std::string keep = gain_text(gain);
  if (!advice.per_layer.empty()) {
    layers(advice, keep, to);
  } else if (!advice.above_target.empty()) {
    to.push_back({Severity::warning,
                  fmt::format("In {} more than {} of the values still become zero at the "
                              "recommended scale: {}.",
                              plural(advice.above_target.size(), "tensor"),
                              share_text(advice.asked.target_underflow),
                              listed_code(advice.above_target, 3)),
                  keep});
  } else if (gain != nullptr) {
    to.push_back({Severity::note,
                  fmt::format("One tensor or operation holds the loss scale down by {}: {}.",
                              plural(static_cast<std::uint64_t>(gain->binades_gained), "binade"),
                              code(gain->name)),
                  keep});
  }
}

void find_rounding_noise(const Study& study, std::vector<Finding>& to) {
  std::vector<std::string> names;
  std::uint64_t noise = 0, of = 0;
  for (const auto& tensor : study.analysis.tensors()) {
    if (tensor.rounding_noise == 0) continue;
    names.push_back(tensor.name);
    noise += tensor.rounding_noise;
    of += tensor.counts.finite_nonzero.high;
  }
  if (names.empty()) return;
  to.push_back({Severity::note,
                fmt::format("{} of the {} nonzero values of {} are no larger than the rounding "
                            "errors of their sums: their exact value is 0 or near it.",
                            count_text(noise), count_text(of), listed_code(names, 3)),
                "They are left out of the target, the lowest scale and the order of harm."});
}

/// Adds a warning on scales above those that frameworks use in sound runs.
void find_unusual_scale(const Study& study, std::vector<Finding>& to) {
  constexpr int kUnusual = 30;
  const Recommendation& advice = study.advice;
  if (advice.static_log2.value_or(0) < kUnusual || !advice.limited_by || advice.none_needed) return;
  to.push_back(
      {Severity::warning,
       fmt::format("A loss scale of {} is unusual: the largest gradient is only {}.",
                   power_text(*advice.static_log2), magnitude_text(advice.limited_by->max_abs)),
       "Check that these are gradients, their units, and how the loss is reduced."});
}

void find_unknown_maximum(const Study& study, std::vector<Finding>& to) {
  const Recommendation& r = study.advice;
  const bool headline_says_it =
      r.unread.lacking != 0 && !r.clipped && r.incomplete_steps == 0 && !r.may_use;
  if (!has_limits(r) || !r.overflow_not_identifiable || headline_says_it) return;
  const std::string_view record =
      r.clipped                 ? "record them before clipping, as halfscope.torch.Recorder does"
      : r.incomplete_steps != 0 ? "add parameters to the optimizer before backward"
                                : "record a run in FP32 or BF16, or one at a smaller loss scale";
  to.push_back({Severity::note, "The log does not show how large the largest gradients were.",
                fmt::format("To see it, {}.", record)});
}

void find_unknown_underflow(const Study& study, std::vector<Finding>& to) {
  if (!has_limits(study.advice)) return;
  switch (hidden_underflow(study.advice)) {
    case Hidden::no: return;
    case Hidden::in_buckets: to.push_back({Severity::note, lowest_in_buckets(study), ""}); return;
    case Hidden::no_counts:
      to.push_back({Severity::note,
                    "This log has maximum magnitudes but no histograms, so underflow cannot be "
                    "measured.",
                    ""});
      return;
    case Hidden::in_zeros: break;
  }
  const std::string dtype = hiding_format(study);
  to.push_back({Severity::note,
                fmt::format("How many gradients underflowed is unknown: some were computed in {}, "
                            "where an underflowed value is already zero. Shares of zeros are "
                            "therefore ranges, and there is no lowest scale.",
                            dtype),
                fmt::format("Record {} run to measure it.",
                            dtype == "FP16" ? "an FP32 or BF16" : "an FP32")});
}

}  // namespace halfscope::reports::answer
