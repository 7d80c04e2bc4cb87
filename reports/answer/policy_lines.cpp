// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/policy_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analyzers/underflow/share.hpp"
#include "reports/answer/policies.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::reports::answer {

using analyzers::replay::PolicyStudy;
using analyzers::replay::StepSeries;
using analyzers::replay::Trace;
using namespace analyzers;

namespace {

bool drawable(double scale) { return scale > 0 && std::isfinite(scale); }

/// Returns true if two lines and their marks are identical.
bool same_line(const Trace& a, const Trace& b) {
  return a.length == b.length && a.scale == b.scale && a.skipped == b.skipped &&
         a.unknown == b.unknown && a.applied_nonfinite == b.applied_nonfinite;
}

/// Returns true if every step of the trace is unknown.
bool is_unknown(const Trace& trace) {
  return trace.length > 0 && trace.unknown.size() >= trace.length;
}

bool holds(const std::vector<std::int64_t>& steps, std::int64_t step) {
  return std::binary_search(steps.begin(), steps.end(), step);
}

/// Adds a line. If an identical line exists, adds only the name to it.
void add_line(std::vector<PolicyLine>& lines, const std::string& name, const Trace& trace) {
  const auto same = std::find_if(lines.begin(), lines.end(), [&](const PolicyLine& line) {
    return same_line(*line.trace, trace);
  });
  if (same == lines.end()) {
    lines.push_back({name, &trace});
  } else if (same->name.find(name) == std::string::npos) {
    same->name += " = " + name;
  }
}

/// Returns the groups with a line to draw: torch's group first, then by lost share.
std::vector<std::vector<std::size_t>> drawn_groups(const PolicyStudy& study) {
  auto groups = study.groups;
  std::erase_if(groups, [&](const auto& group) {
    const Trace& trace = study.traces[group.front()];
    return !trace.unavailable.empty() || trace.scale.empty() || is_unknown(trace);
  });
  std::stable_partition(groups.begin(), groups.end(), [&](const auto& group) {
    return std::any_of(group.begin(), group.end(),
                       [&](std::size_t i) { return study.traces[i].name == "torch"; });
  });
  return groups;
}

}  // namespace

std::string group_name(const PolicyStudy& study, const std::vector<std::size_t>& group) {
  constexpr std::size_t kNamed = 2;
  std::vector<std::size_t> members = group;  // torch first: it is the name that users know best
  std::stable_partition(members.begin(), members.end(),
                        [&](std::size_t i) { return study.traces[i].name == "torch"; });
  std::vector<std::string> names;
  for (const std::size_t i : members) names.push_back(trace_name(study.traces[i]));
  return listed(names, kNamed);
}

std::vector<PolicyLine> policy_lines(const PolicyStudy& study) {
  std::vector<PolicyLine> lines;
  if (study.recorded && !is_unknown(*study.recorded)) {
    lines.push_back({"the run itself", &*study.recorded});
  }
  const std::size_t most = kPoliciesDrawn - (study.fixed ? 1 : 0) - (study.tuned ? 1 : 0);
  for (const auto& group : drawn_groups(study)) {
    if (lines.size() == most) break;
    add_line(lines, group_name(study, group), study.traces[group.front()]);
  }
  if (study.tuned && !is_unknown(study.tuned->trace)) {
    add_line(lines, "best found: " + study.tuned->text, study.tuned->trace);
  }
  if (study.fixed && !(lines.empty() && is_unknown(*study.fixed))) {
    lines.push_back({"recommended static " + scales_text(*study.fixed), &*study.fixed, true});
  }
  return lines;
}

std::vector<Plateau> plateaus(const Trace& trace) {
  std::vector<Plateau> all;
  for (std::size_t i = 0; i < trace.scale.size() && drawable(trace.scale[i].second); ++i) {
    const std::size_t end = i + 1 < trace.scale.size() ? trace.scale[i + 1].first : trace.length;
    if (end > trace.scale[i].first) {
      all.push_back({trace.scale[i].first, end - 1, end, trace.scale[i].second});
    }
  }
  if (all.size() <= kScalesDrawn) return all;
  const std::size_t stretch = trace.length / (kScalesDrawn / 2) + 1;
  std::vector<Plateau> kept;
  for (auto at = all.begin(); at != all.end();) {
    const std::size_t bin = at->first / stretch;
    const auto end =
        std::find_if(at, all.end(), [&](const Plateau& p) { return p.first / stretch != bin; });
    auto [least, most] = std::minmax_element(
        at, end, [](const Plateau& a, const Plateau& b) { return a.scale < b.scale; });
    if (most < least) std::swap(least, most);
    kept.push_back(*least);
    if (most != least) kept.push_back(*most);
    at = end;
  }
  for (std::size_t i = 0; i + 1 < kept.size(); ++i) kept[i].until = kept[i + 1].first;
  return kept;
}

std::string_view name_of(Happening what) {
  switch (what) {
    case Happening::overflow: return "skipped: overflow by the scale";
    case Happening::in_model: return "skipped: NaN in the model";
    case Happening::unknown: return "unknown";
    case Happening::applied: return "NaN or infinity applied";
    case Happening::retried: break;
  }
  return "tried again";
}

namespace {

std::size_t index_of(const StepSeries& series, std::int64_t step) {
  return static_cast<std::size_t>(step - series.steps.front());  // a replayed series has no gaps
}

/// Returns true if no scale would have prevented the skip.
bool in_model(const StepSeries& series, std::size_t index) {
  const replay::AttemptMagnitudes& seen = series.seen[index];
  return !std::isfinite(seen.max_abs) && seen.overflow_from == 0;
}

constexpr std::size_t kHappenings = 5;
using StepsByKind = std::array<std::vector<std::int64_t>, kHappenings>;

StepsByKind happenings(const Trace& trace, const StepSeries& series) {
  StepsByKind out;
  const auto put = [&](Happening what, std::int64_t step) {
    out.at(static_cast<std::size_t>(what)).push_back(step);
  };
  for (const std::int64_t step : trace.skipped) {
    const std::size_t index = index_of(series, step);
    put(in_model(series, index) ? Happening::in_model : Happening::overflow, step);
  }
  for (const std::int64_t step : trace.unknown) put(Happening::unknown, step);
  for (const std::int64_t step : trace.applied_nonfinite) put(Happening::applied, step);
  for (const auto& [index, attempts] : trace.attempts) {
    const std::int64_t step = series.steps[index];
    if (attempts > 1 && !holds(trace.skipped, step) && !holds(trace.unknown, step)) {
      put(Happening::retried, step);
    }
  }
  return out;
}

}  // namespace

std::vector<Mark> marks(const Trace& trace, const StepSeries& series) {
  std::vector<Mark> out;
  const StepsByKind kinds = happenings(trace, series);
  for (std::size_t kind = 0; kind < kHappenings; ++kind) {
    const bool all = kinds.at(kind).size() <= kMarksDrawn;
    const std::size_t stretch = all ? 1 : series.steps.size() / kMarksDrawn + 1;
    std::size_t bin = series.steps.size();
    for (const std::int64_t step : kinds.at(kind)) {
      const std::size_t index = index_of(series, step);
      if (index / stretch == bin) {
        out.back().last = step;
        ++out.back().count;
        continue;
      }
      bin = index / stretch;
      out.push_back({static_cast<Happening>(kind), step, step, 1, trace.scale_at(index)});
    }
  }
  return out;
}

std::string thinned_text(const PolicyStudy& study) {
  std::string scales;
  bool binned = false;
  for (const PolicyLine& line : policy_lines(study)) {
    const Trace& trace = *line.trace;
    if (trace.scale.size() > kScalesDrawn) scales += (scales.empty() ? "" : ", ") + line.name;
    for (const Mark& mark : marks(trace, study.series)) binned = binned || mark.count > 1;
  }
  std::string out;
  if (!scales.empty()) {
    out += fmt::format("For {} only the least and the largest scale of every {} are drawn. ",
                       scales, plural(study.series.steps.size() / (kScalesDrawn / 2) + 1, "step"));
  }
  if (binned) out += "Marks that would overlap are drawn as one, with their number. ";
  if (!out.empty()) out.pop_back();
  return out;
}

}  // namespace halfscope::reports::answer
