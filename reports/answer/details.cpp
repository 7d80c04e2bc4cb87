// SPDX-License-Identifier: Apache-2.0
// Answer::details: the evidence for a recommended scale, one or two sentences each.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "halfscope/log/error.hpp"
#include "reports/answer/answer_parts.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/no_scale.hpp"
#include "reports/answer/ranks_words.hpp"
#include "reports/answer/scale_words.hpp"
#include "reports/answer/skip_words.hpp"
#include "reports/answer/summary.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::Study;
using analyzers::recommend::Limit;
using analyzers::recommend::RankSum;
using analyzers::recommend::Recommendation;
using analyzers::underflow::Share;

namespace {

using Sentences = std::vector<std::string>;

/// Adds the share of gradients that become zero, by number and by L1 norm.
void zeros(const Study& study, Sentences& to) {
  const Recommendation& r = study.advice;
  if (hidden_underflow(r) == Hidden::no_counts) return;
  const auto both = [&](const Share& share, const std::optional<MassShare>& mass) {
    const std::string count = flushed_text(study, share);
    return mass ? fmt::format("{} ({} of their L1 norm)", count,
                              share_range_text(mass->l1.low, mass->l1.high))
                : count;
  };
  std::string line = fmt::format("Gradients that become zero: {} without a scale, {} at {}.",
                                 both(r.flushed_at_1, r.lost_at_1),
                                 both(r.flushed_at_recommended, r.lost_at_recommended),
                                 power_text(*r.static_log2));
  if (r.lowest_log2 && *r.lowest_log2 <= *r.highest_log2) {
    line += fmt::format(" Scales from {} to {} keep that at {} or less in every tensor.",
                        power_text(*r.lowest_log2), power_text(*r.highest_log2),
                        share_text(r.asked.target_underflow));
  }
  to.push_back(line);
}

std::string limit_text(const Recommendation& r) {
  const Limit& limit = *r.limited_by;
  if (limit.skipped_at) {
    return fmt::format(
        "Limited by gradients of {} or more: {}. That leaves at most {:.1f} binades below "
        "overflow.",
        magnitude_text(limit.max_abs), skipped_limit_text(limit), r.headroom_bits);
  }
  if (limit.nan_at) {
    return fmt::format(
        "Limited by {} at step {}: {}, so by a magnitude of at least {}. That leaves at most "
        "{:.1f} binades below overflow.",
        code(limit.name), limit.step, nan_limit_text(limit), magnitude_text(limit.max_abs),
        r.headroom_bits);
  }
  // A scalar of a step does not name the tensor.
  const std::string name = limit.from_scalars
                               ? fmt::format("the {}", values_name(*log::find_role(limit.name)))
                               : code(limit.name);
  return fmt::format(
      "Limited by {} at step {}: {} largest magnitude is {}{}, which leaves {}{:.1f} binades "
      "below overflow.",
      name, limit.step, limit.from_scalars ? "their" : "its",
      limit.censored  ? "at least "
      : limit.bounded ? "at most "
                      : "",
      magnitude_text(limit.max_abs), limit.censored ? "at most " : "", r.headroom_bits);
}

void skips(const Recommendation& r, Sentences& to) {
  if (!r.skip) return;
  std::string line =
      fmt::format("At {}, {}.", power_text(*r.static_log2), overflowing_text(*r.skip));
  if (r.steps_left_out != 0) {
    line += fmt::format(" Not counted: {} whose largest gradient is unknown (infinity or NaN).",
                        plural(r.steps_left_out, "step"));
  }
  to.push_back(line);
}

void dynamic(const Recommendation& r, Sentences& to) {
  if (r.dynamic.empty()) return;
  const analyzers::recommend::DynamicAdvice& d = r.dynamic.front();
  to.push_back(fmt::format("Dynamic scaling: {}. {}. {}", settings_text(d), replayed_text(d),
                           why_settings_text(d)));
}

void ranks(const Recommendation& r, Sentences& to) {
  if (!r.ranks) return;
  const RankSum& sum = *r.ranks;
  std::string line = fmt::format(
      "Sum over {} ranks in FP16: dividing before it flushes {} instead of {}; ", sum.ranks,
      share_text(sum.flushed_before, sum.of.high), share_text(sum.flushed_alone, sum.of.high));
  if (sum.headroom_after > 0) {
    line +=
        fmt::format("dividing after it leaves {:.1f} binades below overflow", sum.headroom_after);
  } else {
    line += "dividing after it may overflow";
    if (sum.highest_after_log2) {
      line += fmt::format(", safe up to {}", power_text(*sum.highest_after_log2));
    }
  }
  to.push_back(line + ".");
}

/// Adds what autocast keeps in FP32 without any action.
void autocast(const Recommendation& advice, Sentences& to) {
  using analyzers::recommend::KeepInFp32;
  std::string names;
  for (const KeepInFp32& keep : advice.keep_in_fp32) {
    if (!keep.by_autocast()) continue;
    names += (names.empty() ? "" : ", ");
    names += (keep.kind == KeepInFp32::Kind::logits ? "softmax of " : "") + code(keep.name);
  }
  if (!names.empty()) {
    to.push_back(fmt::format("Autocast keeps in FP32, so do not cast by hand: {}.", names));
  }
}

void scale(const Study& study, Sentences& to) {
  const Recommendation& r = study.advice;
  zeros(study, to);
  if (r.limited_by) to.push_back(limit_text(r));
  if (const std::string half = half_parameters_text(r); !half.empty()) to.push_back(half);
  if (const std::string missed = missed_text(r); !missed.empty()) {
    to.push_back(fmt::format("Even so, {}.", log::printable(missed)));
  }
  if (*r.static_log2 == analyzers::underflow::kLastLog2Scale && !r.above_target.empty()) {
    to.push_back(fmt::format(
        "2^{} is the largest scale considered: these gradients are too small for FP16 at any "
        "scale in use.",
        analyzers::underflow::kLastLog2Scale));
  }
}

void memory(const Recommendation& advice, Sentences& to) {
  if (!advice.footprint || advice.footprint->bytes_fp32 == 0) return;
  const analyzers::recommend::Footprint& f = *advice.footprint;
  to.push_back(fmt::format(
      "Weights and activations of a {} take {} in FP32, {} in FP16, {} in FP16 with FP32 master "
      "weights.",
      f.microbatches > 1 ? "microbatch" : "step", bytes_text(f.bytes_fp32),
      bytes_text(f.bytes_fp16), bytes_text(f.bytes_mixed)));
}

}  // namespace

std::vector<std::string> details(const Study& study) {
  Sentences out;
  const Recommendation& advice = study.advice;
  if (advice.static_log2 && !advice.needs_no_scale()) scale(study, out);
  skips(advice, out);
  dynamic(advice, out);
  ranks(advice, out);
  autocast(advice, out);
  memory(advice, out);
  return out;
}

}  // namespace halfscope::reports::answer
