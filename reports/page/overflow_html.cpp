// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "reports/answer/no_scale.hpp"
#include "reports/answer/text.hpp"
#include "reports/page/data_table.hpp"
#include "reports/page/evidence.hpp"
#include "reports/page/kept.hpp"

namespace halfscope::reports::page {

using analyzers::Study;
using analyzers::overflow::Cause;
using analyzers::overflow::Headroom;
using analyzers::overflow::OverflowEvent;

namespace {

/// Events shown with all that leads there; the rest are told in a line each.
constexpr std::size_t kEventsInFull = 6;

std::string cause_text(Cause cause) {
  switch (cause) {
    case Cause::by_scale: return "the loss scale: a smaller one helps";
    case Cause::at_scale_1: return "overflow at scale 1: no smaller loss scale helps";
    case Cause::nan_in_model: return "in the model: no scale and no format helps";
    case Cause::undetermined: break;
  }
  return "not shown by the log";
}

std::string steps_text(const OverflowEvent& event) {
  return event.step == event.last_step ? fmt::format("step {}", event.step)
                                       : fmt::format("steps {} to {}", event.step, event.last_step);
}

std::string counts_text(const Interval& nan, const Interval& inf, const Interval& overflow) {
  std::string out;
  const auto tell = [&](const Interval& count, const char* what) {
    if (count.high > 0) out += (out.empty() ? "" : ", ") + answer::count_text(count) + " " + what;
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
    Row row{{{breakable_name(lead.name)}, {answer::html_name(lead.relation)}}};
    for (const std::int64_t step : steps) {
      const auto at = std::find_if(lead.glimpses.begin(), lead.glimpses.end(),
                                   [&](const auto& glimpse) { return glimpse.step == step; });
      if (at == lead.glimpses.end()) {
        row.cells.push_back({"", -1, "", true});
        continue;
      }
      const std::string bad = counts_text(at->nan, at->inf, at->overflow);
      std::string text = at->max_abs ? answer::magnitude_text(*at->max_abs) : "nothing finite";
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
      "{}</p>\n",
      steps_text(event), answer::html_name(event.tensor),
      several_logs ? " in <code>" + answer::html_name(event.log) + "</code>" : "", counts,
      cause_text(event.cause),
      event.safe_log2
          ? fmt::format(" A scale of {}{} would have held{}.", event.estimated ? "at most " : "",
                        answer::power_text(*event.safe_log2),
                        event.estimated ? "; how much less is unknown" : "")
          : "",
      answer::html_name(event.why));
  return out + leads_html(event) + "</div>\n";
}

std::string expected_text(const Headroom& h) {
  return h.overflow_expected_at ? fmt::format("step {}", *h.overflow_expected_at) : "";
}

/// Over the steps that were recorded: a few steps say nothing of the next thousand.
Cell growth_cell(const Headroom& h) {
  const std::optional<double> growth = h.growth();
  if (!growth) return {"", -1e300, "", true};
  return {fmt::format("{:+.2f}", *growth), *growth};
}

/// Room at scale 1, told at the scale to use where one acts on the tensor.
double to_use(const Study& study, const Headroom& h, double at_1) {
  const bool scaled = study.analysis.tensors()[h.tensor].counted && study.advice.static_log2;
  return at_1 - (scaled ? *study.advice.static_log2 : 0);
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
                     {breakable_name(event.tensor)},
                     {counts_text(event.nan, event.inf, event.overflow)},
                     {cause_text(event.cause)}}});
    if (logs) rows.back().cells.push_back({answer::html_name(event.log)});
  }
  std::vector<std::string> headings = {"later", "tensor", "values", "cause"};
  if (logs) headings.push_back("log");
  return out + data_table("Later events", headings, rows, 0, "recommend LOG --json FILE");
}

std::vector<Room> rooms_to_use(const Study& study) {
  std::vector<Room> out;
  for (const Headroom& h : study.overflow.headroom) {
    out.push_back({&h, to_use(study, h, h.least_at_1), to_use(study, h, h.last_at_1)});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Room& a, const Room& b) { return a.least < b.least; });
  return out;
}

std::string room_scale_text(const Study& study) {
  return study.advice.static_log2 ? fmt::format("the {} {}", answer::advised_word(study.advice),
                                                answer::power_text(*study.advice.static_log2))
                                  : "loss scale 1";
}

std::string headroom_html(const Study& study) {
  if (study.overflow.headroom.empty()) return "";
  const auto tensors = study.analysis.tensors();
  const bool logs = study.analysis.logs.size() > 1;
  std::vector<Row> rows;
  const std::vector<Room> rooms = rooms_to_use(study);
  const std::size_t shown = std::min(rooms.size(), kMostTensors);
  for (const Room& room : std::span(rooms).first(shown)) {
    const Headroom& h = *room.headroom;
    Row row{{{breakable_name(tensors[h.tensor].name)}}};
    if (logs) row.cells.push_back({answer::html_name(tensors[h.tensor].log)});
    row.cells.push_back(
        {fmt::format("{}{:.2f}", h.censored ? "at most " : "", room.least), room.least});
    row.cells.push_back({std::to_string(h.least_at), static_cast<double>(h.least_at)});
    row.cells.push_back({fmt::format("{:.2f}", room.last), room.last});
    row.cells.push_back(growth_cell(h));
    const std::string expected = expected_text(h);
    row.cells.push_back(
        {expected, h.overflow_expected_at ? -static_cast<double>(*h.overflow_expected_at) : -1e300,
         h.scale == 1 ? "" : "at loss scale " + answer::scale_text(h.scale), expected.empty()});
    rows.push_back(std::move(row));
  }
  std::vector<std::string> headings = {"tensor"};
  if (logs) headings.push_back("log");
  for (const char* heading : {"least headroom, binades", "at step", "headroom at the last step",
                              "growth, binades", "overflow, if it goes on"}) {
    headings.push_back(heading);
  }
  return data_table("Headroom below overflow, tensor by tensor", headings, rows,
                    rooms.size() - shown);
}

}  // namespace halfscope::reports::page
