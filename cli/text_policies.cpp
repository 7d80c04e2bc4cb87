// SPDX-License-Identifier: Apache-2.0
#include "cli/text_policies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <sstream>
#include <vector>

#include "halfscope/log/error.hpp"
#include "reports/policy_words.hpp"
#include "reports/text.hpp"

namespace halfscope::cli {
namespace {

namespace text = reports;
using analyzers::PolicyStudy;
using analyzers::Trace;
using log::printable;

constexpr std::size_t kColumns = 100;

/// A row of the table: numbers, then names, which wrap.
struct Line {
  std::array<std::string, 6> cells;
  std::vector<std::string> names;
};

Line line_of(const Trace& trace, const PolicyStudy& study, std::vector<std::string> names) {
  return {{text::lost_text(trace), text::skipped_text(trace),
           text::flushed_text(trace.mean_flushed), text::flushed_text(trace.worst_flushed),
           text::scales_text(trace), text::end_text(trace, study.series)},
          std::move(names)};
}

/// "torch", "apex", "keras2"
std::vector<std::string> names_of(const PolicyStudy& study, const std::vector<std::size_t>& group) {
  std::vector<std::string> names;
  for (const std::size_t i : group) names.push_back(text::trace_name(study.traces[i]));
  return names;
}

std::vector<Line> lines_of(const PolicyStudy& study) {
  std::vector<Line> lines = {
      {{"lost", "skipped", "flushed", "worst", "scale", "at the end"}, {"policy"}}};
  if (study.recorded) lines.push_back(line_of(*study.recorded, study, {"the run itself"}));
  if (study.fixed) lines.push_back(line_of(*study.fixed, study, {"recommended static scale"}));
  for (const auto& group : analyzers::alike(study)) {
    const Trace& trace = study.traces[group.front()];
    if (trace.unavailable.empty()) lines.push_back(line_of(trace, study, names_of(study, group)));
  }
  return lines;
}

/// Names joined, wrapped behind the columns of numbers.
std::string wrapped(const std::vector<std::string>& names, std::size_t indent) {
  std::string out;
  std::size_t column = indent;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = names[i] + (i + 1 < names.size() ? ", " : "");
    if (i > 0 && column + name.size() > kColumns + 1) {
      while (out.back() == ' ') out.pop_back();
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    out += name;
    column += name.size();
  }
  return out;
}

std::string table(const PolicyStudy& study) {
  const std::vector<Line> lines = lines_of(study);
  std::array<std::size_t, 6> widths = {};
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], line.cells[i].size());
    }
  }
  const std::size_t indent = 2 + std::accumulate(widths.begin(), widths.end(), 2 * widths.size());
  std::string out;
  for (const Line& line : lines) {
    out += "  ";
    for (std::size_t i = 0; i < widths.size(); ++i) {
      out += fmt::format("{:>{}}  ", line.cells[i], widths[i]);
    }
    out += wrapped(line.names, indent) + "\n";
  }
  for (const Trace& trace : study.traces) {
    if (trace.unavailable.empty()) continue;
    out += text::wrapped_text(
        fmt::format("  {}: unavailable, {}", trace.name, printable(trace.unavailable)), kColumns,
        4);
  }
  return out + "\n";
}

std::string heading(const PolicyStudy& study) {
  const analyzers::StepSeries& s = study.series;
  std::string out = fmt::format("{}: {}", printable(s.log), text::plural(s.steps.size(), "step"));
  if (!s.from_magnitudes && !s.steps.empty()) {
    out += fmt::format(", {} to {}", s.steps.front(), s.steps.back());
    out += s.flushed.empty() ? ", none with tables"
                             : fmt::format(", {} with tables", s.flushed.size());
  }
  return out + "\n\n";
}

/// Lines that are too long are broken, those to paste left as they are.
std::string paragraphs(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    out += line.starts_with(' ') ? line + "\n" : text::wrapped_text(line, kColumns, 2);
  }
  return out;
}

std::string legend(const PolicyStudy& study) {
  std::string out =
      "Policies at their frameworks' settings, on the gradients as recorded (open loop: whatever "
      "they would\nhave made of the weights). Lost: all of a skipped step's gradients";
  out += study.series.flushed.empty() ? "; how many are flushed is not known.\n"
                                      : ", of other steps' what is flushed to zero.\n";
  const bool unknown = std::any_of(study.traces.begin(), study.traces.end(),
                                   [](const Trace& trace) { return !trace.unknown.empty(); });
  if (unknown) {
    out +=
        "0 to 9 skipped: at 9 steps the run overflowed at a larger scale, or not all gradients are "
        "recorded:\nnobody knows whether it would have at this one.\n";
  }
  return out;
}

/// Whether a trap concerns the run, the policy that was tuned, or one that was asked for.
bool concerns(const analyzers::Trap& trap, const PolicyStudy& study, bool asked) {
  return asked || trap.policy == "recorded" || (study.tuned && trap.policy == study.tuned->name);
}

std::string traps(const PolicyStudy& study, bool asked) {
  PolicyStudy shown;
  std::set<std::string> others;
  shown.series.from_magnitudes = study.series.from_magnitudes;
  for (const analyzers::Trap& trap : study.traps) {
    if (concerns(trap, study, asked)) {
      shown.traps.push_back(trap);
    } else {
      others.insert(trap.policy);
    }
  }
  std::string out = shown.traps.empty() ? "" : "Beware:\n";
  for (const auto& [names, trap] : text::traps_text(shown)) {
    out += text::wrapped_text(fmt::format("  {}: {}", names, printable(trap)), kColumns, 4);
  }
  if (!others.empty()) {
    out += text::wrapped_text(
        fmt::format("Traps of other policies: {}. --policy NAME tells of one, --json of all.",
                    fmt::join(others, ", ")),
        kColumns, 2);
  }
  return out;
}

std::string value_text(const policy::Policy& policy) {
  const std::string all = policy::text_of(policy);
  const std::size_t comma = all.find(',');
  return comma == std::string::npos ? "(no settings)" : all.substr(comma + 1);
}

}  // namespace

std::string policies_text(const PolicyStudy& study, double target_underflow, bool asked) {
  std::string answer = text::run_text(study) + text::fixed_text(study);
  if (study.tuned) answer += text::tuned_text(*study.tuned, target_underflow);
  return heading(study) + paragraphs(answer) + legend(study) + "\n" + table(study) +
         traps(study, asked);
}

std::string catalogue_text() {
  std::string out;
  for (const policy::Policy& p : policy::all()) {
    const policy::Info& info = policy::info_of(p);
    out += fmt::format("{}: {}\n  {}\n", info.name, info.framework, value_text(p));
    if (!info.quirk.empty()) out += fmt::format("  {}\n", info.quirk);
    out += fmt::format("  source: {}\n\n", info.source);
  }
  return out + "Use one as --policy NAME, or with settings as --policy NAME,KEY=VALUE,...\n";
}

}  // namespace halfscope::cli
