// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_overflow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "halfscope/log/error.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {

using analyzers::overflow::Cause;
using analyzers::overflow::Headroom;
using analyzers::overflow::OverflowEvent;

namespace {

using namespace analyzers;
using log::printable;

/// The answer first: which of the three it is.
std::string cause_text(const OverflowEvent& event) {
  switch (event.cause) {
    case Cause::by_scale:
      return fmt::format(
          "the loss scale is too large; {}",
          event.estimated
              ? fmt::format("at most {} would have held, how much less is unknown",
                            reports::answer::power_text(event.safe_log2.value_or(0)))
              : reports::answer::power_text(event.safe_log2.value_or(0)) + " would have held");
    case Cause::at_scale_1: return "it overflows without any loss scale";
    case Cause::nan_in_model:
      return fmt::format("{} in the model; no loss scale helps",
                         event.nan.low != 0 || event.inf.low == 0 ? "NaN" : "infinity");
    case Cause::undetermined: return "the log does not show why";
  }
  return "";
}

std::string glimpse_text(const overflow::Glimpse& glimpse) {
  std::string text = fmt::format("step {}: {}", glimpse.step,
                                 glimpse.max_abs ? reports::answer::magnitude_text(*glimpse.max_abs)
                                                 : "nothing finite and nonzero");
  if (glimpse.inf.high != 0) {
    text += fmt::format(", {} inf", reports::answer::count_text(glimpse.inf));
  }
  if (glimpse.nan.high != 0) {
    text += fmt::format(", {} NaN", reports::answer::count_text(glimpse.nan));
  }
  if (glimpse.overflow.high != 0) {
    text += fmt::format(", {} overflow", reports::answer::count_text(glimpse.overflow));
  }
  return text;
}

std::string event_text(const OverflowEvent& event, bool several_logs) {
  const std::string steps = event.step == event.last_step
                                ? fmt::format("step {}", event.step)
                                : fmt::format("steps {} to {}", event.step, event.last_step);
  return fmt::format("  {}{}, first in {}{}: {}.\n    {}\n",
                     several_logs ? printable(event.log) + ": " : "", steps,
                     printable(event.tensor), event.what_if ? " (would overflow)" : "",
                     cause_text(event), event.why);
}

std::string leads_text(const OverflowEvent& event) {
  if (event.leads.empty()) return "";
  constexpr std::size_t kShown = 3;  // steps of a lead, the last ones: the JSON has all
  std::string text = "    What led there, largest magnitudes:\n";
  for (const overflow::Lead& lead : event.leads) {
    text += fmt::format("      {} ({}):", printable(lead.name), lead.relation);
    const std::size_t first = lead.glimpses.size() - std::min(kShown, lead.glimpses.size());
    for (std::size_t i = first; i < lead.glimpses.size(); ++i) {
      text += fmt::format("{} {}", i == first ? "" : ";", glimpse_text(lead.glimpses[i]));
    }
    text += "\n";
  }
  return text;
}

std::string events_text(const std::vector<OverflowEvent>& events, bool several_logs) {
  constexpr std::size_t kShown = 5;
  if (events.empty()) return "";
  std::string text = "\nInfinity, NaN and overflow:\n";
  for (std::size_t i = 0; i < std::min(kShown, events.size()); ++i) {
    text += event_text(events[i], several_logs);
    if (i == 0) text += leads_text(events[i]);
  }
  if (events.size() > kShown) {
    text += fmt::format("  and {} more; --json - gives all\n", events.size() - kShown);
  }
  return text;
}

std::string room_text(const Headroom& h) {
  if (h.least <= 0) {
    if (h.censored && h.least == 0) return fmt::format("is infinite at step {}", h.least_at);
    return fmt::format("overflows at step {}, by {}{:.1f} binades", h.least_at,
                       h.censored ? "at least " : "", std::abs(h.least));
  }
  return fmt::format("{}{:.1f} binades at step {}{}", h.censored ? "at most " : "", h.least,
                     h.least_at,
                     h.scale == 1 ? "" : " at loss scale " + reports::answer::scale_text(h.scale));
}

/// The tensor with the least room, and every other one that is close or grows toward overflow.
std::string rooms_text(const underflow::Analysis& analysis, const std::vector<Headroom>& all) {
  constexpr std::size_t kShown = 5;
  constexpr double kClose = 4;  // binades
  std::string text;
  std::size_t shown = 0;
  for (const Headroom& h : all) {
    const bool wanted = shown == 0 || h.least < kClose || h.overflow_expected_at;
    if (!wanted || shown == kShown) continue;
    ++shown;
    text += fmt::format("  {}: {}", printable(analysis.tensors()[h.tensor].name), room_text(h));
    if (h.overflow_expected_at) {
      text += fmt::format("; it grows, and would overflow about step {}", *h.overflow_expected_at);
    }
    text += "\n";
  }
  return text.empty() ? "" : "\nLeast headroom below overflow, without a loss scale:\n" + text;
}

}  // namespace

std::string overflow_text(const underflow::Analysis& analysis,
                          const overflow::OverflowFindings& found) {
  return events_text(found.events, analysis.logs.size() > 1) + rooms_text(analysis, found.headroom);
}

}  // namespace halfscope::cli::terminal
