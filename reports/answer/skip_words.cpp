// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/skip_words.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::recommend::SkipBound;

namespace {

/// For example "at most 3.4 %, 95 %, one-sided".
std::string interval_text(double low, double high) {
  return low > 0 ? share_range_text(low, high) + ", 95 %"
                 : fmt::format("at most {}, 95 %, one-sided", share_text(high));
}

Interval counted(const SkipBound& bound) {
  return {bound.exceedances, bound.exceedances + bound.perhaps};
}

/// Returns a sentence on steps outside the bound: ". 57 more are unknown". Empty if there are none.
std::string others_text(const SkipBound& bound) {
  if (bound.unread == 0) return "";
  const std::string more = fmt::format("{} more", count_text(bound.unread));
  return bound.unread_exceedances == 0
             ? fmt::format(". {} {} unknown", more, bound.unread == 1 ? "is" : "are")
             : fmt::format(". Of {} at least {} do", more, count_text(bound.unread_exceedances));
}

}  // namespace

std::string chance_text(const SkipBound& bound) {
  if (bound.low <= 0) return "at most " + share_text(bound.high);
  return fmt::format("{} ({})", share_text(bound.probability),
                     share_range_text(bound.low, bound.high));
}

std::string overflowing_text(const SkipBound& bound) {
  return fmt::format("{} of {}{} overflow ({}){}", count_text(counted(bound)),
                     plural(bound.steps, "step"),
                     bound.unread == 0 ? "" : " whose gradients were all read",
                     interval_text(bound.low, bound.high), others_text(bound));
}

std::string settings_text(const analyzers::recommend::DynamicAdvice& advice) {
  constexpr std::uint64_t kNever = std::numeric_limits<std::int32_t>::max();
  const policy::Info& policy = policy::info_of(advice.policy);
  return fmt::format("{} starts at {} with {} {}{}", policy.name, scale_text(advice.init),
                     policy.interval, advice.growth_interval,
                     advice.growth_interval >= kNever ? " (it never grows)" : "");
}

std::string why_settings_text(const analyzers::recommend::DynamicAdvice& advice) {
  const policy::Info& policy = policy::info_of(advice.policy);
  if (advice.from_run_scale) {
    return "The scale of the run itself settled there; its gradients are not in the log.";
  }
  if (advice.tried == 0) {
    return fmt::format(
        "This is twice the static scale: an overflow skips one step and halves the scale. {} is "
        "{}'s growth interval.",
        advice.growth_interval, policy.framework.substr(0, policy.framework.find(',')));
  }
  return fmt::format(
      "{} settings of {} were replayed over the recorded steps: {}.", count_text(advice.tried),
      policy.name,
      advice.kept ? "none is worth a change from those it has" : "these lose the fewest gradients");
}

std::string replayed_text(const analyzers::recommend::DynamicAdvice& advice) {
  if (!advice.replayed) return "The log cannot be replayed, so how many steps it skips is unknown";
  const SkipBound& found = *advice.replayed;
  return fmt::format(
      "Replayed over the recorded steps, it skips {} of {} ({}){}", count_text(counted(found)),
      found.unread == 0 ? count_text(found.steps)
                        : plural(found.steps, "step") + " whose gradients were all read",
      interval_text(found.low, found.high), others_text(found));
}

}  // namespace halfscope::reports::answer
