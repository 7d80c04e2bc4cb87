// SPDX-License-Identifier: Apache-2.0
// Findings on layers: factors that can be moved from one layer to the next, and attention scores.
#include <fmt/format.h>

#include <algorithm>

#include "halfscope/number/convert.hpp"
#include "reports/answer/findings_list.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer::found {

using analyzers::Study;
using analyzers::overflow::AttentionScores;
using analyzers::overflow::LayerShift;

namespace {

double largest_of(const analyzers::underflow::Target& target) {
  return to_double(target.format, target.format.largest_finite());
}

/// Returns true if the shift flushes less than a serious share of the layer's weights.
bool is_of_use(const Study& study, const LayerShift& shift) {
  return static_cast<double>(shift.flushed.low) <
         study.advice.asked.serious_share *
             static_cast<double>(std::max<std::uint64_t>(1, shift.of.high));
}

std::string layer_lost_text(const Study& study, const LayerShift& shift) {
  if (shift.flushed.high == 0 && shift.subnormal.high == 0) return "";
  return fmt::format(" Of {} recorded weights of {}, {} become subnormal in {}, and {} become 0.",
                     count_text(shift.of), code(shift.layer), count_text(shift.subnormal),
                     format_name(study.analysis), count_text(shift.flushed));
}

std::string condition_text(const LayerShift& shift) {
  if (shift.in_sequence) return "The network computes the same.";
  const std::string check =
      shift.between.empty() ? "" : fmt::format(" Check {}.", listed_code(shift.between, 3));
  return fmt::format(
      "The network computes the same if {} alone reads what {} computes, and if all between "
      "commutes with a positive factor, as ReLU, pooling and dropout do.{}",
      code(shift.next), code(shift.layer), check);
}

/// A remark for networks whose training continues after the shift.
constexpr std::string_view kTraining =
    " A training that goes on needs other learning rates for both layers "
    "(docs/numerics/statistics.md).";

}  // namespace

void shifts(const Study& study, List& to) {
  if (study.advice.no_scale == analyzers::recommend::NoScale::diverges) return;
  std::vector<const LayerShift*> all;
  for (const LayerShift& shift : study.shifts) {
    if (is_of_use(study, shift)) all.push_back(&shift);
  }
  if (all.empty()) return;
  const LayerShift& first = *all.front();
  const std::string more = all.size() == 1 ? ""
                                           : fmt::format(" {} more can be helped in this way.",
                                                         plural(all.size() - 1, "activation"));
  to.push_back(
      {first.in_sequence ? Severity::serious : Severity::note,
       fmt::format("{} fits {} if weights and bias of {} are multiplied by {}{}, and the weights "
                   "of {} by {}.",
                   code(first.activation), format_name(study.analysis), code(first.layer),
                   power_text(-first.log2), first.censored ? " or less" : "", code(first.next),
                   first.censored ? "the inverse" : power_text(first.log2)),
       condition_text(first) + layer_lost_text(study, first) + more + std::string(kTraining),
       first.in_sequence ? Evidence::overflow : Evidence::advice});
}

void scores(const Study& study, List& to) {
  const AttentionScores* worst = nullptr;
  std::size_t all = 0;
  for (const AttentionScores& s : study.scores) {
    if (!s.can_overflow) continue;
    ++all;
    if (worst == nullptr || s.at_most() > worst->at_most()) worst = &s;
  }
  if (worst == nullptr) return;
  const std::string name = format_name(study.analysis);
  const std::string more =
      all == 1 ? "" : fmt::format(" So can those of {} more.", plural(all - 1, "attention"));
  const std::uint64_t most = worst->by_head ? analyzers::overflow::kLargestHead : worst->width;
  const std::string divide =
      worst->enough_head > most
          ? ""
          : fmt::format(
                "Divide q by the root of the head's size before the product, not after "
                "it: that is enough for heads of {} elements or more. Else compute",
                worst->enough_head);
  to.push_back(
      {Severity::note,
       fmt::format("Attention scores can overflow {}: a product of {} and {} can be up to {} at "
                   "step {}{}, and {} holds {:.0f}.{}",
                   name, code(worst->query), code(worst->key), magnitude_text(worst->at_most()),
                   worst->step,
                   worst->by_head ? fmt::format(" in heads of at most {} elements",
                                                analyzers::overflow::kLargestHead)
                                  : "",
                   name, largest_of(study.analysis.target), more),
       (divide.empty() ? "Compute" : divide) + std::string(" the product in FP32 or bfloat16."),
       Evidence::advice});
}

}  // namespace halfscope::reports::answer::found
