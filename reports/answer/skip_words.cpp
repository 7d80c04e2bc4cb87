// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/skip_words.hpp"

#include <fmt/format.h>

#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {
namespace {

/// "at most 3.4 %, 95 %, one-sided"
std::string interval_text(double low, double high) {
  return low > 0 ? share_range_text(low, high) + ", 95 %"
                 : fmt::format("at most {}, 95 %, one-sided", share_text(high));
}

}  // namespace

std::string chance_text(const analyzers::recommend::SkipBound& bound) {
  if (bound.low <= 0) return "at most " + share_text(bound.high);
  return fmt::format("{} ({})", share_text(bound.probability),
                     share_range_text(bound.low, bound.high));
}

std::string overflowing_text(const analyzers::recommend::SkipBound& bound) {
  const Interval overflow(bound.exceedances, bound.exceedances + bound.perhaps);
  return fmt::format("{} of {} overflow ({})", count_text(overflow), plural(bound.steps, "step"),
                     interval_text(bound.low, bound.high));
}

std::string replayed_text(const analyzers::recommend::DynamicAdvice& advice) {
  if (!advice.replayed) return "the log cannot be replayed, so how many steps it skips is unknown";
  const analyzers::recommend::ReplayedSkips& found = *advice.replayed;
  return fmt::format("replayed over the recorded steps, it skips {} of {} ({})",
                     count_text(found.skipped), count_text(found.steps),
                     interval_text(found.low, found.high));
}

}  // namespace halfscope::reports::answer
