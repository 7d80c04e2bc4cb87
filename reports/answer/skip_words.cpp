// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/skip_words.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::recommend::SkipBound;

namespace {

/// "at most 3.4 %, 95 %, one-sided"
std::string interval_text(double low, double high) {
  return low > 0 ? share_range_text(low, high) + ", 95 %"
                 : fmt::format("at most {}, 95 %, one-sided", share_text(high));
}

/// "0 of 61 steps"; "0 of the 4 steps whose gradients were all read"
std::string counted_text(const SkipBound& bound) {
  const Interval found(bound.exceedances, bound.exceedances + bound.perhaps);
  if (bound.unread == 0) {
    return fmt::format("{} of {}", count_text(found), plural(bound.steps, "step"));
  }
  return fmt::format("{} of the {} whose gradients were all read", count_text(found),
                     plural(bound.steps, "step"));
}

/// What is known of the other steps. verb: what they may do.
std::string unread_text(const SkipBound& bound, std::string_view verb) {
  const std::string others = plural(bound.unread, "other step");
  if (bound.unread_exceedances == 0) {
    return fmt::format("It is unknown whether {} {}", others, verb);
  }
  return fmt::format("Of {}, {} or more {}", others, count_text(bound.unread_exceedances), verb);
}

}  // namespace

std::string chance_text(const SkipBound& bound) {
  if (bound.low <= 0) return "at most " + share_text(bound.high);
  return fmt::format("{} ({})", share_text(bound.probability),
                     share_range_text(bound.low, bound.high));
}

std::string overflowing_text(const SkipBound& bound) {
  if (bound.unread == 0) {
    return fmt::format("{} overflow ({})", counted_text(bound),
                       interval_text(bound.low, bound.high));
  }
  return fmt::format("{} overflow ({}). {}", counted_text(bound),
                     interval_text(bound.low, bound.high), unread_text(bound, "overflow"));
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
  if (advice.of_own_scale) {
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
  const Interval skipped(found.exceedances, found.exceedances + found.perhaps);
  const std::string counted =
      found.unread == 0 ? fmt::format("{} of {}", count_text(skipped), count_text(found.steps))
                        : counted_text(found);
  const std::string text = fmt::format("Replayed over the recorded steps, it skips {} ({})",
                                       counted, interval_text(found.low, found.high));
  return found.unread == 0 ? text
                           : fmt::format("{}. {}", text, unread_text(found, "would be skipped"));
}

}  // namespace halfscope::reports::answer
