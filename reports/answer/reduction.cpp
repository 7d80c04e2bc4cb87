// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/reduction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "halfscope/log/error.hpp"
#include "halfscope/number/format_names.hpp"
#include "reports/answer/formats.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::reduction::kHarmfulError;
using analyzers::reduction::Order;
using analyzers::reduction::Over;
using analyzers::reduction::Reduction;
using analyzers::reduction::Sum;

namespace {

constexpr std::size_t kSumsNamed = 3;

/// Returns the relative L2 error of a sum; for a prediction the upper bound.
double error_of(const Reduction& one) {
  return one.predicted ? one.predicted->relative_l2.high : one.facts.relative_l2();
}

/// Returns an error as a share of the sums, or as a multiple of them if it is larger than 1.
std::string error_text(double error) {
  if (std::isinf(error)) return "infinite";
  return error <= 1 ? share_text(error) : fmt::format("{:.3g} times the sums", error);
}

/// Returns the error of a sum as text. Empty if no result is finite.
std::string error_text(const Reduction& one) {
  if (!one.predicted) {
    return one.facts.measured() == 0 ? "" : error_text(one.facts.relative_l2());
  }
  const auto& error = one.predicted->relative_l2;
  return error.high <= 1 ? share_range_text(error.low, error.high)
                         : error_text(error.low) + " to " + error_text(error.high);
}

std::string sum_lost_text(const Reduction& one) {
  if (!one.predicted) return share_text(one.facts.lost, one.facts.additions);
  return share_range_text(one.predicted->lost.low, one.predicted->lost.high);
}

/// For example "752 of 19,900 sums overflow" or "3.1 % to 4.4 % of sums overflow".
std::string overflow_text(const Reduction& one) {
  if (!one.predicted) {
    if (one.facts.overflow == 0) return "";
    return fmt::format("{} of {} {}", count_text(one.facts.overflow),
                       plural(one.facts.elements, "sum"),
                       one.facts.overflow == 1 ? "overflows" : "overflow");
  }
  const auto& share = one.predicted->overflow;
  return share.high == 0
             ? ""
             : fmt::format("{} of sums overflow", share_range_text(share.low, share.high));
}

/// Returns the share of addends that round to zero. Empty if it is harmless.
std::string flushed_text(const Reduction& one) {
  if (one.flushed_share < kHarmfulError) return "";
  return fmt::format("{} of the addends' magnitudes round to zero first",
                     share_text(one.flushed_share));
}

std::string place_text(const Reduction& one) {
  return fmt::format("{} of {}", sum_name(one.sum), code(one.name));
}

/// For example "BF16 all-reduce over 384 ranks loses 18 % of additions, error 2.7 %".
std::string loss_text(const Reduction& one, const std::string& subject) {
  const bool predicted = one.predicted.has_value();
  std::string text = fmt::format("{} {} {} of additions", subject,
                                 predicted ? "would lose" : "loses", sum_lost_text(one));
  if (const std::string error = error_text(one); !error.empty()) text += ", error " + error;
  for (const std::string& more : {overflow_text(one), flushed_text(one)}) {
    if (!more.empty()) text += ", and " + more;
  }
  if (predicted) {
    text += fmt::format(" (predicted from {}{})", one.predicted->recorded,
                        one.predicted->noise_alone ? ", which show no mean above the noise" : "");
  }
  if (one.facts.nonfinite > 0) {
    text += fmt::format(" ({} left out: an addend is infinite or NaN)",
                        plural(one.facts.nonfinite, "sum"));
  }
  return text;
}

/// Returns true if there are finite sums to judge.
bool has_sums(const Reduction& one) { return one.facts.elements > 0; }

/// Puts the log's name before the text if there are several logs.
std::string of_log(const Reduction& one, bool several, const std::string& text) {
  return several ? fmt::format("{}: {}", code(one.log), text) : text;
}

bool has_several_logs(const std::vector<Reduction>& found) {
  return std::ranges::any_of(found,
                             [&](const Reduction& one) { return one.log != found.front().log; });
}

/// Returns the name of an order. A prediction over ranks treats a ring as a chain.
std::string_view in_order(const Reduction& one) {
  switch (one.order) {
    case Order::sequential:
      return one.predicted && one.over == Over::ranks ? "in a ring" : "in a chain";
    case Order::ring: return "in a ring";
    case Order::tree: return "in a tree";
    case Order::pairwise: return "by pairs";
  }
  return "";
}

/// Returns a sentence on the best order if the sum is harmful only in another one.
std::string other_order_text(const Reduction& one, const Reduction& best) {
  if (!one.is_harmful() || best.is_harmful()) return "";
  return fmt::format(" That is {}; {} the error is {}: harmless.", in_order(one), in_order(best),
                     error_text(best));
}

std::string sentence_of_gradients(const Reduction& one, const Reduction& best) {
  const std::string format(people_say(one.format));
  const std::string subject =
      one.over == Over::ranks
          ? fmt::format("{} all-reduce over {} ranks", format, count_text(one.count))
          : fmt::format("{} accumulation of {} microbatches", format, count_text(one.count));
  if (!has_sums(one)) {
    return fmt::format("{} cannot be judged: every sum has an infinite or NaN addend.", subject);
  }
  const char* const cure = one.format == "binary32"  ? "divide the addends first"
                           : one.over == Over::ranks ? "reduce in FP32"
                                                     : "accumulate in FP32";
  const char* const verdict = one.is_surely_harmful() ? cure
                              : one.is_harmful()      ? "FP32 may be needed"
                                                      : "harmless";
  return fmt::format("{}: {}.{}", loss_text(one, subject), verdict, other_order_text(one, best));
}

using ReductionGroup = std::vector<const Reduction*>;

/// Returns the sentence on sums of one format over elements. `group`: each sum in its worst order.
std::string sentence_of_elements(const ReductionGroup& group) {
  const std::string format(people_say(group.front()->format));
  const auto judged = static_cast<std::size_t>(
      std::ranges::count_if(group, [](auto* one) { return has_sums(*one); }));
  if (judged == 0) return format + " accumulators: every sum has an infinite or NaN addend.";
  std::vector<std::string> harmful;
  for (const Reduction* one : group) {
    if (!one->is_harmful()) continue;
    std::string why = overflow_text(*one);
    if (why.empty()) why = flushed_text(*one);
    if (why.empty()) why = "error " + error_text(*one);
    harmful.push_back(
        fmt::format("{} ({} addends, {})", place_text(*one), count_text(one->count), why));
  }
  if (harmful.empty()) {
    const Reduction& worst =
        **std::ranges::find_if(group, [](auto* one) { return has_sums(*one); });
    return fmt::format(
        "{} accumulators are harmless for {} over elements: the largest error is {}, "
        "in the {}.",
        format, plural(judged, "sum"), error_text(worst), place_text(worst));
  }
  return fmt::format("{} accumulators are not enough for {} of {} over elements: {}. {}.", format,
                     harmful.size(), plural(judged, "sum"), listed(harmful, kSumsNamed),
                     group.front()->format == "binary32"
                         ? "Divide the addends first"
                         : "Keep them in FP32, as PyTorch's own kernels do");
}

bool is_worse(const Reduction* a, const Reduction* b) {
  const auto overflow = [](const Reduction* one) {
    return one->predicted ? one->predicted->overflow.high
                          : static_cast<double>(one->facts.overflow);
  };
  return std::tuple(overflow(a), error_of(*a)) > std::tuple(overflow(b), error_of(*b));
}

/// Identifies one sum in one format, in any order of addition.
auto key_of(const Reduction& one) {
  return std::tuple(one.log, one.name, one.sum, one.over, one.count, one.format,
                    one.predicted.has_value());
}

/// Returns each sum with the order that has the largest error; the worst sum is first.
ReductionGroup worst_orders(const std::vector<Reduction>& found) {
  std::map<decltype(key_of(found.front())), const Reduction*> worst;
  for (const Reduction& one : found) {
    const auto [at, added] = worst.emplace(key_of(one), &one);
    if (!added && is_worse(&one, at->second)) at->second = &one;
  }
  ReductionGroup all;
  for (const auto& [key, one] : worst) all.push_back(one);
  std::ranges::stable_sort(all, is_worse);
  return all;
}

/// Returns the order with the smallest error. No collective adds ranks by pairs.
const Reduction& best_order(const std::vector<Reduction>& found, const Reduction& of) {
  const Reduction* best = &of;
  for (const Reduction& one : found) {
    if (one.over == Over::ranks && one.order == Order::pairwise) continue;
    if (key_of(one) == key_of(of) && is_worse(best, &one)) best = &one;
  }
  return *best;
}

/// Returns true if the sum has a sentence. FP32 has one only if harmful or requested alone.
bool is_told(const Reduction& one, bool alone) {
  return alone || one.format != "binary32" || one.is_harmful();
}

/// Returns a row for a measured sum. Predictions have no row: they are about all tensors together.
Row row_of(const Reduction& one, bool several) {
  const auto& facts = one.facts;
  const Cell bias{fmt::format("{:+.2g}", facts.mean_error_ulp()), facts.mean_error_ulp(),
                  fmt::format("standard error {:.2g} ulp", facts.mean_error_se())};
  const auto overflow = static_cast<double>(facts.overflow);
  return {{{of_log(one, several, code(one.name))},
           {std::string(sum_name(one.sum))},
           {fmt::format("{} {}", count_text(one.count), name_of(one.over)),
            static_cast<double>(one.count)},
           {std::string(people_say(one.format))},
           {std::string(name_of(one.order))},
           {sum_lost_text(one), facts.lost_share()},
           {error_text(one), error_of(one)},
           facts.measured() == 0 ? Cell{"", 0.0, "", true} : bias,
           {count_text(facts.overflow), overflow, "", facts.overflow == 0}}};
}

Table table_of(ReductionGroup worst, bool several) {
  Table table{Evidence::reductions, "The largest errors"};
  table.note =
      "An addition is lost if it changes nothing though its addend is not zero. The error is the "
      "L2 norm of computed minus exact sums over that of the exact ones; the bias is the mean "
      "error in ulps. Each sum has the order with the largest error.";
  table.headings = {"tensor", "sum",   "of",   "accumulator", "order",
                    "lost",   "error", "bias", "overflow"};
  table.all_by = "reduce LOG --json FILE";
  std::erase_if(worst, [](const Reduction* one) { return one->name.empty(); });
  table.add_rows(worst, [&](const Reduction* one) { return row_of(*one, several); });
  return table;
}

PasteLines fp32_lines() {
  return {"Reduce gradients in FP32",
          "MixedPrecisionPolicy(reduce_dtype=torch.float32)   # PyTorch FSDP2\n"
          "--accumulate-allreduce-grads-in-fp32               # Megatron-LM\n"
          "\"communication_data_type\": \"fp32\"                  # DeepSpeed's configuration\n"
          "no bf16_compress_hook, no fp16_compress_hook       # PyTorch DDP with FP32 parameters"};
}

}  // namespace

std::string_view sum_name(Sum sum) {
  switch (sum) {
    case Sum::gradient: return "gradient";
    case Sum::bias_gradient: return "bias gradient";
    case Sum::mean: return "mean";
    case Sum::variance: return "variance";
    case Sum::mean_square: return "mean square";
    case Sum::softmax: return "softmax denominator";
    case Sum::gradient_norm: return "gradient norm";
  }
  return "";
}

std::vector<std::string> reduction_sentences(const std::vector<Reduction>& found) {
  const ReductionGroup worst = worst_orders(found);
  const bool alone =
      std::ranges::all_of(found, [](const Reduction& one) { return one.format == "binary32"; });
  ReductionGroup gradients;
  std::ranges::copy_if(worst, std::back_inserter(gradients), [&](const Reduction* one) {
    return one->over != Over::elements && one->name.empty() && is_told(*one, alone);
  });
  std::ranges::stable_sort(gradients, {}, [](const Reduction* one) {
    return std::tuple(one->log, one->over, one->format, one->count, one->predicted.has_value());
  });
  const bool several = has_several_logs(found);
  std::vector<std::string> sentences;
  for (const Reduction* one : gradients) {
    sentences.push_back(
        of_log(*one, several, sentence_of_gradients(*one, best_order(found, *one))));
  }
  std::map<std::pair<std::string, std::string_view>, ReductionGroup> of_elements;
  for (const Reduction* one : worst) {
    if (one->over == Over::elements) of_elements[{one->log, one->format}].push_back(one);
  }
  for (const auto& [of, group] : of_elements) {
    const Reduction& first = *group.front();
    if (is_told(first, alone)) {
      sentences.push_back(of_log(first, several, sentence_of_elements(group)));
    }
  }
  return sentences;
}

std::string_view reductions_digest(const std::vector<Reduction>& found) {
  bool narrow = false, wide = false;  // some sum loses much
  for (const Reduction& one : found) {
    (one.format == "binary32" ? wide : narrow) |= one.is_harmful();
  }
  if (wide) return "some lose much even in FP32";
  return narrow ? "some lose much unless added in FP32" : "none loses much";
}

Section reduction_section(const std::vector<Reduction>& found) {
  if (found.empty()) return {};
  Section section{"Sums", reduction_sentences(found)};
  const bool predictable = std::ranges::any_of(found, [](const Reduction& one) {
    return one.over == Over::ranks && one.count >= analyzers::reduction::kFewestRanks;
  });
  const bool predicted =
      std::ranges::any_of(found, [](const Reduction& one) { return one.predicted.has_value(); });
  if (predictable && !predicted) {
    section.sentences.push_back(fmt::format("{} predicts the sums over W ranks.",
                                            code("halfscope reduce LOG --over ranks --count W")));
  }
  const ReductionGroup worst = worst_orders(found);
  const bool reduces = std::ranges::any_of(worst, [](const Reduction* one) {
    return one->over == Over::ranks && one->name.empty() && one->format != "binary32" &&
           one->is_harmful();
  });
  if (reduces) section.pastes.push_back(fp32_lines());
  section.add(table_of(worst, has_several_logs(found)));
  return section;
}

}  // namespace halfscope::reports::answer
