// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/findings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyzers/underflow/lost_mass.hpp"
#include "halfscope/log/error.hpp"
#include "reports/answer/findings_list.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/summary.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/update_sums.hpp"

namespace halfscope::reports::answer {

using analyzers::Study;
using analyzers::underflow::Share;

namespace found {

namespace {

Severity severity_of(double share) {
  return share >= kSerious ? Severity::serious
                           : (share >= kWorthTelling ? Severity::warning : Severity::note);
}

Share flushed_now(const Study& study) {
  Share out;
  for (const auto& tensor : study.analysis.tensors()) {
    if (!tensor.counted) continue;
    out.count += tensor.counts.classes.flushed_to_zero;
    out.of += tensor.counts.finite_nonzero;
  }
  return study.analysis.loss_scale == 1 ? study.advice.flushed_at_1 : out;
}

std::string kept_by_masters(const Study& study, std::uint64_t of) {
  const std::optional<UpdateWhatIf> what_if = all_updates(study.analysis).what_if;
  if (!what_if) return "FP32 master weights keep them, as mixed precision does.";
  return fmt::format("FP32 master weights, as mixed precision keeps them, lose {}.",
                     share_text(what_if->master_never, of));
}

std::string cure(const Study& study) {
  const auto& advice = study.advice;
  if (!advice.static_log2 || advice.no_step_held()) return "";
  if (std::exp2(*advice.static_log2) == study.analysis.loss_scale) return "";
  return fmt::format(
      "A loss scale of {} leaves {}.", power_text(*advice.static_log2),
      share_range_text(advice.flushed_at_recommended.low(), advice.flushed_at_recommended.high()));
}

}  // namespace

std::string format_name(const analyzers::underflow::Analysis& analysis) {
  return people_say(analysis.target.name);
}

std::string some_names(const std::vector<std::string>& names) { return listed_names(names, 3); }

void underflow(const Study& study, List& to) {
  const Share now = flushed_now(study);
  if (now.of.high == 0 || now.high() < kWorthTelling || study.advice.needs_no_scale()) return;
  const std::optional<MassShare>& mass = study.lost;
  const std::string scale = scale_text(study.analysis.loss_scale);
  const std::string share = share_range_text(now.low(), now.high()) + " of the gradient values";
  std::string title =
      hidden_by_buckets(study.analysis)
          ? fmt::format("At loss scale {}, what becomes zero is not identifiable: {}", scale, share)
          : fmt::format("At loss scale {}, {} become zero", scale, share);
  // What only may be lost is no serious finding.
  const bool bounds = hidden_underflow(study.advice) == Hidden::in_buckets;
  Severity severity =
      bounds ? std::min(Severity::warning, severity_of(now.low())) : severity_of(now.high());
  std::string advice = cure(study);
  if (mass) {
    title += fmt::format(": {} of their magnitude, {} of their sum of squares",
                         share_range_text(mass->l1.low, mass->l1.high),
                         share_range_text(mass->l2.low, mass->l2.high));
    // Values below 2^-27 were 31 % of all in Multibox SSD and did not matter: Micikevicius et al.,
    // Mixed Precision Training, ICLR 2018, 3.2.
    if (mass->l2.high < kWorthTelling) {
      severity = Severity::note;
      advice = "Many values, little weight: they hardly move the model. " + advice;
    } else if (mass->l2.high < kSerious) {
      severity = Severity::warning;
    }
  }
  to.push_back({severity, title + ".", advice, Evidence::scales});
}

void swamped(const Study& study, List& to) {
  const UpdateCounts counts = all_updates(study.analysis).table.counts;
  const std::uint64_t of = counts.updates(), lost = counts.half.lost();
  if (of == 0) return;
  const double share = static_cast<double>(lost) / static_cast<double>(of);
  if (share < kWorthTelling) return;
  to.push_back({severity_of(share),
                fmt::format("{} of the weight updates are lost {} {}: {} too small "
                            "for the format, {} rounded away.",
                            share_text(lost, of),
                            kept_narrow_text(study).empty() ? "where weights are kept in"
                                                            : "in the weights, which are kept in",
                            format_name(study.analysis), share_text(counts.half.underflow, of),
                            share_text(counts.half.swamped, of)),
                kept_by_masters(study, of), Evidence::updates});
}

namespace {

std::string layers_title(const std::vector<std::string>& served,
                         const std::vector<std::string>& unserved) {
  std::string own, none;
  if (!served.empty()) {
    own = fmt::format("{} {} a scale of {} own ({})", plural(served.size(), "layer"),
                      served.size() == 1 ? "needs" : "need", served.size() == 1 ? "its" : "their",
                      some_names(served));
  }
  if (!unserved.empty()) {
    none = fmt::format("no scale at all reaches the target in {} ({})",
                       plural(unserved.size(), "layer"), some_names(unserved));
  }
  return fmt::format("No single loss scale serves every tensor: {}{}{}.", own,
                     own.empty() || none.empty() ? "" : "; ", none);
}

}  // namespace

void no_single_scale(const Study& study, List& to) {
  const auto& advice = study.advice;
  const auto best = std::max_element(
      advice.keep_in_fp32.begin(), advice.keep_in_fp32.end(),
      [](const auto& a, const auto& b) { return a.binades_gained < b.binades_gained; });
  const bool gains = best != advice.keep_in_fp32.end() && best->binades_gained > 0;
  const std::string keep =
      gains
          ? fmt::format("Keep {} in FP32 and the scale can rise by {}.", log::printable(best->name),
                        plural(static_cast<std::uint64_t>(best->binades_gained), "binade"))
          : "";
  if (!advice.per_layer.empty()) {
    std::vector<std::string> layers, unserved;
    for (const auto& layer : advice.per_layer) {
      (layer.served() ? layers : unserved).push_back(layer.layer);
    }
    const bool little =
        advice.lost_at_recommended && advice.lost_at_recommended->l2.high < kWorthTelling;
    to.push_back({little ? Severity::note : Severity::warning, layers_title(layers, unserved),
                  little ? "At the recommended scale the values lost are many, but hardly any of "
                           "the gradients' magnitude: it does little harm. " +
                               keep
                  : keep.empty() ? (layers.empty() ? "Keep what matters of them in FP32."
                                                   : "Scale layer by layer, or keep them in FP32.")
                                 : keep,
                  Evidence::advice});
  } else if (!advice.above_target.empty()) {
    to.push_back({Severity::warning,
                  fmt::format("{} above the target share of zeros at the recommended scale: {}.",
                              advice.above_target.size() == 1
                                  ? "1 tensor stays"
                                  : plural(advice.above_target.size(), "tensor") + " stay",
                              some_names(advice.above_target)),
                  keep, Evidence::advice});
  } else if (gains) {
    to.push_back({Severity::note,
                  fmt::format("One tensor or operation holds the loss scale down by {}: {}.",
                              plural(static_cast<std::uint64_t>(best->binades_gained), "binade"),
                              log::printable(best->name)),
                  keep, Evidence::advice});
  }
}

void dimensions(const Study& study, List& to) {
  if (!study.advice.footprint || study.advice.footprint->not_multiples_of_8.empty()) return;
  std::vector<std::string> names;
  for (const auto& odd : study.advice.footprint->not_multiples_of_8) names.push_back(odd.name);
  to.push_back(
      {Severity::note,
       fmt::format("{} a dimension that is no multiple of 8: {}.",
                   names.size() == 1 ? "1 tensor has" : plural(names.size(), "tensor") + " have",
                   some_names(names)),
       "Tensor Cores may fall back to slower kernels there: pad where it is cheap.",
       Evidence::advice});
}

void formats(const Study& study, List& to) {
  const FitSums sums = fit_sums(study.analysis);
  if (sums.tensors == 0) return;
  if (sums.eight_bits > 0) {
    to.push_back({Severity::note,
                  fmt::format("{} of {} fit an 8-bit format, {} of them without a scale{}.",
                              count_text(sums.eight_bits), plural(sums.tensors, "tensor"),
                              count_text(sums.eight_bits_as_is),
                              sums.nonfinite == 0 ? ""
                                                  : fmt::format("; {} more hold NaN or infinity",
                                                                count_text(sums.nonfinite))),
                  "", Evidence::formats});
  }
  if (sums.wider_than_16 > 0) {
    to.push_back({Severity::warning,
                  fmt::format("{} of {} fit no 16-bit format, whatever the scale.",
                              count_text(sums.wider_than_16), plural(sums.tensors, "tensor")),
                  "Keep them in FP32.", Evidence::formats});
  }
}

void memory(const Study& study, List& to) {
  if (!study.advice.footprint || study.advice.footprint->bytes_fp32 == 0) return;
  const auto& memory = *study.advice.footprint;
  to.push_back({Severity::note,
                fmt::format("Weights and activations of a {} take {} in FP16, {} in FP32.",
                            memory.microbatches > 1 ? "microbatch" : "step",
                            bytes_text(memory.bytes_fp16), bytes_text(memory.bytes_fp32)),
                fmt::format("With FP32 master weights: {}.", bytes_text(memory.bytes_mixed)),
                Evidence::advice});
}

}  // namespace found

std::string_view name_of(Severity severity) {
  switch (severity) {
    case Severity::serious: return "serious";
    case Severity::warning: return "warning";
    case Severity::note: break;
  }
  return "note";
}

std::string_view name_of(Evidence evidence) {
  switch (evidence) {
    case Evidence::scales: return "scales";
    case Evidence::updates: return "updates";
    case Evidence::overflow: return "overflow";
    case Evidence::policies: return "policies";
    case Evidence::formats: return "formats";
    case Evidence::advice: break;
  }
  return "advice";
}

std::vector<Finding> findings(const Study& study) {
  std::vector<Finding> out;
  for (const auto part : {found::alarms, found::collapse, found::overflow, found::policies,
                          found::underflow, found::swamped, found::no_single_scale,
                          found::thin_room, found::dimensions, found::formats, found::memory}) {
    part(study, out);
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Finding& a, const Finding& b) { return a.severity < b.severity; });
  return out;
}

}  // namespace halfscope::reports::answer
