// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "reports/answer/no_scale.hpp"
#include "reports/answer/skip_words.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {
namespace {

using analyzers::recommend::Recommendation;
using analyzers::recommend::ScaleEvidence;
namespace text = reports::answer;

std::string mass_text(const Bounds& b) { return text::share_range_text(b.low, b.high); }

std::string skip_text(const Recommendation& r) {
  if (!r.skip) return "";
  std::string line = fmt::format("At {}, {}.\n", text::power_text(*r.static_log2),
                                 text::overflowing_text(*r.skip));
  if (r.steps_left_out != 0) {
    line += fmt::format(
        "  {} whose largest gradient is not known (infinity or NaN) {} not counted "
        "there.\n",
        text::plural(r.steps_left_out, "step"), r.steps_left_out == 1 ? "is" : "are");
  }
  return line;
}

std::string dynamic_text(const Recommendation& r) {
  if (r.dynamic.empty()) return "";
  const analyzers::recommend::DynamicAdvice& d = r.dynamic.front();
  return fmt::format("Dynamic scaling: {}. {}.\n", text::settings_text(d), text::replayed_text(d));
}

std::string ranks_text(const Recommendation& r) {
  if (!r.ranks) return "";
  const analyzers::recommend::RankSum& sum = *r.ranks;
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

std::string steps_text(const Interval& steps) {
  return steps.exact() ? text::plural(steps.low, "step") : text::count_text(steps) + " steps";
}

/// The scales worth a line: no scale, the lowest good one, the recommended, and what follows it.
bool worth_a_line(const Recommendation& r, int k) {
  const int at = *r.static_log2;
  const bool near = k >= at - 1 && k <= at + 3;
  return near || k == 0 || k == r.lowest_log2;
}

std::string scales_text(const Recommendation& r) {
  if (r.scales.empty()) return "";
  std::string table = fmt::format("\n  {:>8} {:>20} {:>20} {:>14}  {}\n", "scale", "become zero",
                                  "of L1 norm", "overflowed", "chance of a step");
  std::optional<int> last;
  for (const ScaleEvidence& s : r.scales) {
    if (!worth_a_line(r, s.log2_scale)) continue;
    if (last && *last + 1 < s.log2_scale) table += fmt::format("  {:>8}\n", "...");
    last = s.log2_scale;
    const bool known = s.skip.steps != 0;
    table += fmt::format(
        "  {:>8} {:>20} {:>20} {:>14}  {}{}\n", fmt::format("2^{}", s.log2_scale),
        text::share_text(s.flushed, s.of.high), mass_text(s.lost.l1),
        known ? steps_text(s.overflow_steps) : "unknown",
        known ? text::chance_text(s.skip) : "unknown",
        s.log2_scale == *r.static_log2 ? fmt::format("  <- {}", text::advised_word(r)) : "");
  }
  return table;
}

}  // namespace

std::string advice_text(const Recommendation& advice) {
  if (!advice.static_log2) return "";
  return skip_text(advice) + dynamic_text(advice) + ranks_text(advice) + scales_text(advice);
}

}  // namespace halfscope::cli::terminal
