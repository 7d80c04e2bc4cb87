// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <span>

#include "halfscope/log/error.hpp"
#include "reports/answer/captions.hpp"
#include "reports/answer/overflow.hpp"
#include "reports/answer/scale.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::Study;
using analyzers::overflow::Cause;
using analyzers::overflow::Headroom;
using analyzers::overflow::Lead;
using analyzers::overflow::OverflowEvent;
using analyzers::overflow::TensorState;

namespace {

/// Events that have a section each; later ones have a row each.
constexpr std::size_t kInFull = 3;
/// Last steps shown of the magnitudes that led to an event. The JSON has all.
constexpr std::size_t kStepsOfLead = 3;
/// Tolerance in binades for two results of one headroom: they are rounded in different orders.
constexpr double kSame = 1e-6;
/// Sort key of cells without a forecast: less than any number.
constexpr double kNoForecast = -1e300;

std::string_view cause_text(const OverflowEvent& event) {
  switch (event.cause) {
    case Cause::by_scale:
      return event.growth_probe ? "a dynamic loss scale grew to its limit"
                                : "the loss scale is too large";
    case Cause::at_scale_1: return "it overflows at scale 1: no smaller loss scale helps";
    case Cause::nan_in_model: return "it is in the model: no loss scale and no format helps";
    case Cause::undetermined: break;
  }
  return "the log does not show it";
}

std::string steps_text(const OverflowEvent& event) {
  return event.step == event.last_step ? fmt::format("step {}", event.step)
                                       : fmt::format("steps {} to {}", event.step, event.last_step);
}

std::string bad_values_text(const Interval& nan, const Interval& inf, const Interval& overflow) {
  std::vector<std::string> found;
  const auto add = [&](const Interval& count, std::string_view what) {
    if (count.high > 0) found.push_back(fmt::format("{} {}", count_text(count), what));
  };
  add(nan, "NaN");
  add(inf, "infinite");
  add(overflow, "overflow");
  return fmt::format("{}", fmt::join(found, ", "));
}

std::string held_text(const OverflowEvent& event) {
  if (!event.safe_log2) return "";
  const std::string scale = power_text(*event.safe_log2);
  return event.estimated
             ? fmt::format(" A scale of at most {} would have held; how much less is unknown.",
                           scale)
             : fmt::format(" A scale of {} would have held.", scale);
}

Cell glimpse_cell(const Lead& lead, std::int64_t step) {
  const auto at = std::ranges::find(lead.glimpses, step, &TensorState::step);
  if (at == lead.glimpses.end()) return {"", -1, "", true};
  std::string text = at->max_abs ? magnitude_text(*at->max_abs) : "nothing finite";
  const std::string bad = bad_values_text(at->nan, at->inf, at->overflow);
  if (!bad.empty()) text += ", " + bad;
  return {std::move(text), at->max_abs.value_or(-1)};
}

/// Returns the largest magnitudes before an event: a row for each tensor, a column for each step.
Table leads_table(const OverflowEvent& event) {
  Table table{Evidence::overflow, "Largest magnitudes before it"};
  std::set<std::int64_t> steps;
  for (const Lead& lead : event.leads) {
    for (const TensorState& glimpse : lead.glimpses) steps.insert(glimpse.step);
  }
  while (steps.size() > kStepsOfLead) steps.erase(steps.begin());
  table.headings = {"tensor", "which is"};
  for (const std::int64_t step : steps) table.headings.push_back(fmt::format("step {}", step));
  for (const Lead& lead : event.leads) {
    Row row{{{code(lead.name)}, {log::printable(lead.relation)}}};
    for (const std::int64_t step : steps) row.cells.push_back(glimpse_cell(lead, step));
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// For example "Not finite in step 40, first in weight_grad/x: 3 NaN".
std::string title_of(const OverflowEvent& event, bool several_logs) {
  const std::string values = bad_values_text(event.nan, event.inf, event.overflow);
  return fmt::format("{} in {}, first in {}{}{}", event.what_if ? "Would overflow" : "Not finite",
                     steps_text(event), code(event.tensor),
                     several_logs ? " of " + code(event.log) : "",
                     values.empty() ? "" : ": " + values);
}

Section event_section(const OverflowEvent& event, bool several_logs) {
  Section section{title_of(event, several_logs)};
  section.sentences = {fmt::format("Cause: {}.{}", cause_text(event), held_text(event)),
                       log::printable(event.why)};
  if (!event.leads.empty()) section.tables.push_back(leads_table(event));
  return section;
}

Table later_table(std::span<const OverflowEvent> events, bool several_logs) {
  Table table{Evidence::overflow, "Later events"};
  table.headings = {"at", "tensor", "values", "cause"};
  if (several_logs) table.headings.emplace_back("log");
  table.all_by = kRecommendJson;
  table.add_rows(events, [&](const OverflowEvent& event) {
    Row row{{{steps_text(event), static_cast<double>(event.step)},
             {code(event.tensor)},
             {bad_values_text(event.nan, event.inf, event.overflow)},
             {std::string(cause_text(event))}}};
    if (several_logs) row.cells.push_back({code(event.log)});
    return row;
  });
  return table;
}

/// Returns headroom `at_1` at the scale to use, if that scale multiplies the tensor.
double to_use(const Study& study, const Headroom& h, double at_1) {
  const bool scaled = study.analysis.tensors()[h.tensor].loss_scaled && study.advice.static_log2;
  return at_1 - (scaled ? *study.advice.static_log2 : 0);
}

/// Returns the growth over the recorded steps only, without a forecast.
Cell growth_cell(const Headroom& h) {
  const std::optional<double> growth = h.growth();
  if (!growth) return {"", kNoForecast, "", true};
  return {fmt::format("{:+.2f}", *growth), *growth};
}

/// Returns the step near which the tensor overflows at the scale to use if its trend continues.
Cell expected_cell(const Study& study, const Headroom& h) {
  if (!h.overflow_expected_at || !h.trend) return {"", kNoForecast, "", true};
  // negative: the headroom becomes less
  const double fewer_binades = to_use(study, h, 0) + std::log2(h.scale);
  const double steps = std::floor(fewer_binades / (*h.trend / 1000));
  const std::int64_t step =
      std::max(h.trend_to, *h.overflow_expected_at + static_cast<std::int64_t>(steps));
  return {fmt::format("step {}", step), -static_cast<double>(step)};
}

/// Returns the loss scale of that headroom: "the recommended 65536 (2^16)".
std::string headroom_scale_text(const Study& study) {
  return study.advice.static_log2 ? fmt::format("the {} {}", advised_word(study.advice),
                                                power_text(*study.advice.static_log2))
                                  : "loss scale 1";
}

/// Returns the least headroom of gradients over all steps, for example "1.4 binades". Empty unless
/// scalars or skipped steps show less headroom than every histogram.
std::string least_of_all_steps(const Study& study) {
  const analyzers::recommend::Recommendation& advice = study.advice;
  if (!advice.static_log2 || !advice.limited_by) return "";
  for (const HeadroomToUse& tensor : headroom_to_use(study)) {
    if (tensor.least - kSame <= advice.headroom_bits) return "";
  }
  return fmt::format("{}{:.1f} binades", advice.limited_by->censored ? "at most " : "",
                     advice.headroom_bits);
}

}  // namespace

std::vector<Section> event_sections(const Study& study) {
  const std::span<const OverflowEvent> events = study.overflow.events;
  const bool several_logs = study.analysis.logs.size() > 1;
  const std::size_t in_full = std::min(kInFull, events.size());
  std::vector<Section> sections;
  for (const OverflowEvent& event : events.first(in_full)) {
    sections.push_back(event_section(event, several_logs));
  }
  if (in_full < events.size()) {
    sections.push_back({"", {}, {later_table(events.subspan(in_full), several_logs)}});
  }
  return sections;
}

std::vector<HeadroomToUse> headroom_to_use(const Study& study) {
  std::vector<HeadroomToUse> out;
  for (const Headroom& h : study.overflow.headroom) {
    out.push_back({&h, to_use(study, h, h.least_at_1), to_use(study, h, h.last_at_1)});
  }
  std::ranges::stable_sort(out, {}, &HeadroomToUse::least);
  return out;
}

Caption headroom_caption(const analyzers::Study& study) {
  std::string note =
      fmt::format("Binades between the largest magnitude and overflow, of gradients at {}.",
                  headroom_scale_text(study));
  if (const std::string of_all = least_of_all_steps(study); !of_all.empty()) {
    note +=
        fmt::format(" Over the steps with histograms; of all steps, step {} leaves the least: {}.",
                    study.advice.limited_by->step, of_all);
  }
  return {"Headroom below overflow", note};
}

Table headroom_table(const Study& study) {
  const auto tensors = study.analysis.tensors();
  const bool several_logs = study.analysis.logs.size() > 1;
  Table table{Evidence::overflow, "Headroom below overflow, tensor by tensor",
              headroom_caption(study).note};
  table.all_by = kRecommendJson;
  table.headings = {"tensor"};
  if (several_logs) table.headings.emplace_back("log");
  for (const char* heading :
       {"least headroom", "at step", "at the last step", "growth", "overflow if it grows on"}) {
    table.headings.emplace_back(heading);
  }
  table.add_rows(headroom_to_use(study), [&](const HeadroomToUse& at_scale) {
    const Headroom& h = *at_scale.headroom;
    Row row{{{code(tensors[h.tensor].name)}}};
    if (several_logs) row.cells.push_back({code(*tensors[h.tensor].log)});
    row.cells.push_back(
        {fmt::format("{}{:.2f}", h.censored ? "at most " : "", at_scale.least), at_scale.least});
    row.cells.push_back({std::to_string(h.least_at), static_cast<double>(h.least_at)});
    row.cells.push_back({fmt::format("{:.2f}", at_scale.last), at_scale.last});
    row.cells.push_back(growth_cell(h));
    row.cells.push_back(expected_cell(study, h));
    return row;
  });
  return table;
}

std::string overflow_digest(const Study& study) {
  const auto& events = study.overflow.events;
  std::string digest = events.empty() ? "no event" : plural(events.size(), "event");
  if (study.overflow.headroom.empty()) return digest;
  if (const std::string of_all = least_of_all_steps(study); !of_all.empty()) {
    return digest + fmt::format("; least headroom {} at {}", of_all, headroom_scale_text(study));
  }
  const HeadroomToUse least = headroom_to_use(study).front();
  return digest + fmt::format("; least headroom {}{:.1f} binades at {}",
                              least.headroom->censored ? "at most " : "", least.least,
                              headroom_scale_text(study));
}

}  // namespace halfscope::reports::answer
