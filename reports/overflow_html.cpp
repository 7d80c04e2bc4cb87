// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "reports/data_table.hpp"
#include "reports/evidence.hpp"
#include "reports/text.hpp"

namespace halfscope::reports {

using analyzers::Cause;
using analyzers::OverflowEvent;
using analyzers::Study;

namespace {

/// Events shown with all that leads there; the rest are told in a line each.
constexpr std::size_t kEventsInFull = 6;

std::string cause_text(Cause cause) {
  switch (cause) {
    case Cause::by_scale: return "the loss scale: a smaller one helps";
    case Cause::at_scale_1:
      return "overflow at scale 1: no smaller scale helps, a wider format does";
    case Cause::nan_in_model: return "in the model: no scale and no format helps";
    case Cause::undetermined: break;
  }
  return "not told by the log";
}

std::string steps_text(const OverflowEvent& event) {
  return event.step == event.last_step ? fmt::format("step {}", event.step)
                                       : fmt::format("steps {} to {}", event.step, event.last_step);
}

std::string counts_text(std::uint64_t nan, std::uint64_t inf, const Interval& overflow) {
  std::string out;
  const auto tell = [&](const Interval& count, const char* what) {
    if (count.high > 0) out += (out.empty() ? "" : ", ") + count_text(count) + " " + what;
  };
  tell(nan, "NaN");
  tell(inf, "infinite");
  tell(overflow, overflow.high == 1 ? "overflows" : "overflow");
  return out;
}

/// The frames that lead to an event: a row a tensor, a column a step.
std::string leads_html(const OverflowEvent& event) {
  std::vector<std::int64_t> steps;
  for (const auto& lead : event.leads) {
    for (const auto& glimpse : lead.glimpses) steps.push_back(glimpse.step);
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  if (steps.empty()) return "";
  std::vector<std::string> headings = {"tensor", "is"};
  for (const std::int64_t step : steps) headings.push_back(fmt::format("step {}", step));
  std::vector<Row> rows;
  for (const auto& lead : event.leads) {
    Row row{{{html_name(lead.name)}, {html_name(lead.relation)}}};
    for (const std::int64_t step : steps) {
      const auto at = std::find_if(lead.glimpses.begin(), lead.glimpses.end(),
                                   [&](const auto& glimpse) { return glimpse.step == step; });
      if (at == lead.glimpses.end()) {
        row.cells.push_back({"", -1, "", true});
        continue;
      }
      const std::string bad = counts_text(at->nan, at->inf, at->overflow);
      std::string text = at->max_abs ? magnitude_text(*at->max_abs) : "nothing finite";
      if (!bad.empty()) text += " <span class=\"lost\">" + bad + "</span>";
      row.cells.push_back({text, at->max_abs.value_or(-1)});
    }
    rows.push_back(std::move(row));
  }
  return data_table("What led there", headings, rows);
}

std::string event_html(const OverflowEvent& event, bool several_logs) {
  const std::string counts = counts_text(event.nan, event.inf, event.overflow);
  std::string out = fmt::format(
      "<div class=\"event\"><h3>{}: <code>{}</code>{} <small>{}</small></h3>\n<p>Cause: {}.{} "
      "{}</p>"
      "\n",
      steps_text(event), html_name(event.tensor),
      several_logs ? " in <code>" + html_name(event.log) + "</code>" : "", counts,
      cause_text(event.cause),
      event.safe_log2 ? fmt::format(" A scale of {} would have held.", power_text(*event.safe_log2))
                      : "",
      html_name(event.why));
  return out + leads_html(event) + "</div>\n";
}

std::string expected_text(const analyzers::Headroom& h) {
  return h.overflow_expected_at ? fmt::format("step {}", *h.overflow_expected_at) : "";
}

}  // namespace

std::string events_html(const Study& study) {
  const auto& events = study.overflow.events;
  const bool logs = study.analysis.logs.size() > 1;
  std::string out;
  for (std::size_t i = 0; i < events.size() && i < kEventsInFull; ++i) {
    out += event_html(events[i], logs);
  }
  if (events.size() <= kEventsInFull) return out;
  std::vector<Row> rows;
  for (std::size_t i = kEventsInFull; i < events.size(); ++i) {
    const OverflowEvent& event = events[i];
    rows.push_back({{{steps_text(event), static_cast<double>(event.step)},
                     {html_name(event.tensor)},
                     {counts_text(event.nan, event.inf, event.overflow)},
                     {cause_text(event.cause)}}});
    if (logs) rows.back().cells.push_back({html_name(event.log)});
  }
  std::vector<std::string> headings = {"later", "tensor", "values", "cause"};
  if (logs) headings.push_back("log");
  return out + data_table("Later events", headings, rows);
}

std::string headroom_html(const Study& study) {
  if (study.overflow.headroom.empty()) return "";
  const auto& tensors = study.analysis.tensors;
  const bool logs = study.analysis.logs.size() > 1;
  std::vector<Row> rows;
  for (const analyzers::Headroom& h : study.overflow.headroom) {
    Row row{{{html_name(tensors.at(h.tensor).name)}}};
    if (logs) row.cells.push_back({html_name(tensors.at(h.tensor).log)});
    row.cells.push_back({fmt::format("{:.2f}", h.least), h.least});
    row.cells.push_back({std::to_string(h.least_at), static_cast<double>(h.least_at)});
    row.cells.push_back({fmt::format("{:.2f}", h.last), h.last});
    row.cells.push_back(h.trend ? Cell{fmt::format("{:+.2f}", *h.trend), *h.trend}
                                : Cell{"", -1e300, "", true});
    const std::string expected = expected_text(h);
    row.cells.push_back(
        {expected, h.overflow_expected_at ? -static_cast<double>(*h.overflow_expected_at) : -1e300,
         "", expected.empty()});
    rows.push_back(std::move(row));
  }
  std::vector<std::string> headings = {"tensor"};
  if (logs) headings.push_back("log");
  for (const char* heading : {"least room, binades", "at step", "room at the last step",
                              "growth in 1,000 steps", "overflow, if it goes on"}) {
    headings.push_back(heading);
  }
  return data_table("Room below overflow, tensor by tensor", headings, rows);
}

}  // namespace halfscope::reports
