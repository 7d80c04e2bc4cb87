// SPDX-License-Identifier: Apache-2.0
#include "cli/text_advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "reports/text.hpp"

namespace halfscope::cli {
namespace {

using analyzers::Recommendation;
using analyzers::RiskMethod;
using analyzers::ScaleEvidence;
using analyzers::SkipRisk;
namespace text = reports;

std::string mass_text(const Bounds& b) { return text::share_range_text(b.low, b.high); }

/// "0.12 % (at most 1.3 %)"
std::string risk_text(const SkipRisk& risk) {
  if (risk.low <= 0) return fmt::format("at most {}", text::share_text(risk.high));
  return fmt::format("{} ({})", text::share_text(risk.probability),
                     text::share_range_text(risk.low, risk.high));
}

std::string method_text(const SkipRisk& risk) {
  const std::string steps = text::plural(risk.steps, "recorded step");
  if (risk.method == RiskMethod::extreme_value) {
    return fmt::format(
        "an extreme-value fit to the largest magnitudes of {}, for a step like the last", steps);
  }
  return fmt::format(
      "the binomial bound from {}: too few, or too much alike, for a fit of the tail", steps);
}

std::string skip_text(const Recommendation& r) {
  if (!r.skip) return "";
  return fmt::format("Chance that a step overflows at {}: {}, 95 % confidence, by {}.\n",
                     text::power_text(*r.static_log2), risk_text(*r.skip), method_text(*r.skip));
}

std::string lost_text(const Recommendation& r) {
  if (!r.lost_at_1 || !r.lost_at_recommended) return "";
  return fmt::format("Of the gradients' magnitude (L1) {} is lost without a scale, {} with {}.\n",
                     mass_text(r.lost_at_1->l1), mass_text(r.lost_at_recommended->l1),
                     text::power_text(*r.static_log2));
}

std::string dynamic_text(const Recommendation& r) {
  if (!r.dynamic) return "";
  const analyzers::DynamicAdvice& d = *r.dynamic;
  return fmt::format(
      "Dynamic scaling: start at {} with growth_interval {}; about {} of steps would be skipped "
      "({}).\n",
      text::power_text(d.init_log2), d.growth_interval, text::share_text(d.expected_skip_rate),
      text::share_range_text(d.skip_low, d.skip_high));
}

std::string ranks_text(const Recommendation& r) {
  if (!r.ranks) return "";
  const analyzers::RankSum& sum = *r.ranks;
  std::string line =
      fmt::format("Sum over {} ranks in FP16: dividing before it flushes {} instead of {}; ",
                  sum.ranks, text::share_text(sum.flushed_before, sum.of.high),
                  text::share_text(sum.flushed_alone, sum.of.high));
  if (sum.headroom_after > 0) {
    return line + fmt::format("dividing after it leaves {:.1f} binades below overflow.\n",
                              sum.headroom_after);
  }
  line += "dividing after it may overflow";
  if (sum.highest_after_log2) {
    line += fmt::format(", safe up to {}", text::power_text(*sum.highest_after_log2));
  }
  return line + ".\n";
}

/// The scales worth a line: no scale, the lowest good one, the recommended, and what follows it.
bool worth_a_line(const Recommendation& r, int k) {
  const int at = *r.static_log2;
  const bool near = k >= at - 1 && k <= at + 3;
  return near || k == 0 || k == r.lowest_log2;
}

std::string scales_text(const Recommendation& r) {
  if (r.scales.empty()) return "";
  std::string table = fmt::format("\n  {:>8} {:>22} {:>22} {:>10}  {}\n", "scale",
                                  "flushed to zero", "L1 lost", "overflow", "chance a step");
  for (const ScaleEvidence& s : r.scales) {
    if (!worth_a_line(r, s.log2_scale)) continue;
    const bool known = s.skip.steps != 0;
    table += fmt::format("  {:>8} {:>22} {:>22} {:>10}  {}{}\n", fmt::format("2^{}", s.log2_scale),
                         text::share_text(s.flushed, s.of.high), mass_text(s.lost.l1),
                         known ? text::plural(s.overflow_steps, "step") : "unknown",
                         known ? risk_text(s.skip) : "unknown",
                         s.log2_scale == *r.static_log2 ? "  <- recommended" : "");
  }
  return table;
}

}  // namespace

std::string advice_text(const Recommendation& advice) {
  if (!advice.static_log2) return "";
  return lost_text(advice) + skip_text(advice) + dynamic_text(advice) + ranks_text(advice) +
         scales_text(advice);
}

}  // namespace halfscope::cli
