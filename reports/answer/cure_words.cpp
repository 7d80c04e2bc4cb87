// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/cure_words.hpp"

#include <fmt/format.h>

#include <cmath>

#include "analyzers/recommend/recommend.hpp"
#include "reports/answer/reduction_words.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::recommend::Footprint;
using analyzers::recommend::KeepInFp32;
using Kind = KeepInFp32::Kind;
using Why = KeepInFp32::Why;

std::string_view name_of(Kind kind) {
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

std::string odd_extents_text(const Footprint::Odd& odd) {
  const auto outputs = [&] { return plural(odd.shape.at(0), "output"); };
  const auto inputs = [&] { return plural(odd.shape.at(1), "input"); };
  switch (odd.extents) {
    case Footprint::Extents::outputs: return outputs();
    case Footprint::Extents::inputs: return inputs();
    case Footprint::Extents::both: return outputs() + " and " + inputs();
  }
  return "";
}

std::string why_text(const Footprint::Odd& odd) {
  return odd_extents_text(odd) + ": no multiple of 8";
}

}  // namespace halfscope::reports::answer
