// SPDX-License-Identifier: Apache-2.0
// Findings on layers: factors that can be moved from one layer to the next, attention scores, odd
// dimensions, and a loss that is a sum.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "halfscope/number/convert.hpp"
#include "reports/answer/findings.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

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

/// Adds the first shift that is of use, if it is `in_sequence` or not as asked.
void add_shift(const Study& study, bool in_sequence, std::vector<Finding>& to) {
  if (study.advice.no_scale == analyzers::recommend::NoScale::diverges) return;
  std::vector<const LayerShift*> all;
  for (const LayerShift& shift : study.shifts) {
    if (is_of_use(study, shift)) all.push_back(&shift);
  }
  if (all.empty() || all.front()->in_sequence != in_sequence) return;
  const LayerShift& first = *all.front();
  const std::string more = all.size() == 1 ? ""
                                           : fmt::format(" {} more can be helped in this way.",
                                                         plural(all.size() - 1, "activation"));
  to.push_back(
      {in_sequence ? Severity::serious : Severity::note,
       fmt::format("{} fits {} if weights and bias of {} are multiplied by {}{}, and the weights "
                   "of {} by {}.",
                   code(first.activation), format_name(study.analysis), code(first.layer),
                   power_text(-first.log2), first.censored ? " or less" : "", code(first.next),
                   first.censored ? "the inverse" : power_text(first.log2)),
       condition_text(first) + layer_lost_text(study, first) + more + std::string(kTraining)});
}

/// Returns true if the largest usable loss scale is small: gradients need nearly all of the range.
bool short_of_room(const Study& study) {
  constexpr double kSmall = 256;  // a fourth of the smallest initial scale of any framework
  if (study.advice.static_log2) return std::ldexp(1.0, *study.advice.static_log2) < kSmall;
  return std::ranges::any_of(study.timelines, [](const auto& log) {
    return log.scale_last && *log.scale_last < kSmall && log.skipped_in_all.low > 0;
  });
}

}  // namespace

void find_layer_shifts(const Study& study, std::vector<Finding>& to) { add_shift(study, true, to); }

void find_possible_shifts(const Study& study, std::vector<Finding>& to) {
  add_shift(study, false, to);
}

void find_attention_scores(const Study& study, std::vector<Finding>& to) {
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
       (divide.empty() ? "Compute" : divide) + std::string(" the product in FP32 or bfloat16.")});
}

void find_odd_dimensions(const Study& study, std::vector<Finding>& to) {
  if (!study.advice.footprint || study.advice.footprint->not_multiples_of_8.empty()) return;
  std::vector<std::string> names;
  for (const auto& odd : study.advice.footprint->not_multiples_of_8) names.push_back(odd.name);
  to.push_back(
      {Severity::note,
       fmt::format("{} a large dimension that is not a multiple of 8: {}.",
                   names.size() == 1 ? "1 tensor has" : plural(names.size(), "tensor") + " have",
                   listed_code(names, 3)),
       "On a GPU, pad it: Tensor Cores may use slower kernels otherwise."});
}

void find_summed_loss(const Study& study, std::vector<Finding>& to) {
  const auto& sum = study.summed_loss;
  if (!sum || !short_of_room(study)) return;
  to.push_back(
      {Severity::note,
       fmt::format("The loss begins at {}, and a mean of cross-entropies is at most {}. If it is "
                   "a sum over tokens, gradients are more than {} times too large, and {} of "
                   "FP16's binades are lost.",
                   loss_text(sum->loss), sum->kLargestMean,
                   count_text(static_cast<std::uint64_t>(sum->times())), std::ilogb(sum->times())),
       "Then divide it by the number of tokens before the backward pass."});
}

}  // namespace halfscope::reports::answer
