// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_policies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <vector>

#include "halfscope/log/error.hpp"
#include "reports/answer/policy_words.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {
namespace {

namespace text = reports::answer;
using analyzers::replay::PolicyStudy;
using analyzers::replay::Trace;
using log::printable;

constexpr std::size_t kColumns = 100;

/// A row of the table: numbers, then names, which wrap.
struct Line {
  std::array<std::string, 6> cells;
  std::vector<std::string> names;
};

Line line_of(const Trace& trace, const PolicyStudy& study, std::vector<std::string> names) {
  constexpr auto kNarrow = text::narrow_range_text;
  return {{text::lost_text(trace, study.series, kNarrow), text::skipped_text(trace),
           text::flushed_text(trace.mean_flushed, kNarrow),
           text::flushed_text(trace.worst_flushed, kNarrow), text::scales_text(trace),
           text::end_text(trace, study.series)},
          std::move(names)};
}

/// "torch", "apex", "keras2"
std::vector<std::string> names_of(const PolicyStudy& study, const std::vector<std::size_t>& group) {
  std::vector<std::string> names;
  for (const std::size_t i : group) names.push_back(text::trace_name(study.traces[i]));
  return names;
}

/// The heading, what the policies are held against, an empty line, and the policies.
std::vector<Line> lines_of(const PolicyStudy& study) {
  std::vector<Line> lines = {
      {{"lost", "skipped", "flushed", "worst", "scale", "at the end"}, {"policy"}}};
  for (const auto& [name, trace] : text::references(study)) {
    lines.push_back(line_of(*trace, study, {name}));
  }
  if (lines.size() > 1) lines.emplace_back();
  for (const auto& group : study.groups) {
    const Trace& trace = study.traces[group.front()];
    if (trace.unavailable.empty()) lines.push_back(line_of(trace, study, names_of(study, group)));
  }
  return lines;
}

/// Names joined, wrapped behind the columns of numbers.
std::string wrapped(const std::vector<std::string>& names, std::size_t indent) {
  constexpr std::size_t kNames = 32;  ///< columns at least
  const std::size_t columns = std::max(kColumns, indent + kNames);
  std::string out;
  std::size_t column = indent;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = names[i] + (i + 1 < names.size() ? ", " : "");
    if (i > 0 && column + name.size() > columns + 1) {
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
    if (line.names.empty()) {
      out += "\n";
      continue;
    }
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
  const analyzers::replay::StepSeries& s = study.series;
  std::string out = fmt::format("{}: {}", printable(s.log), text::plural(s.steps.size(), "step"));
  if (!s.from_magnitudes && !s.steps.empty()) {
    out += fmt::format(", {} to {}", text::step_text(s.steps.front()),
                       text::step_text(s.steps.back()));
    out += s.flushed.empty()
               ? ", none with histograms"
               : fmt::format(", {} with histograms", text::count_text(s.flushed.size()));
  }
  return out + "\n\n";
}

/// Lines that are too long are broken, those to paste left as they are.
std::string paragraphs(std::vector<text::AnswerLine> lines) {
  while (!lines.empty() && lines.back().text.empty()) lines.pop_back();
  std::string out;
  for (const text::AnswerLine& line : lines) {
    out += line.paste ? "  " + line.text + "\n" : text::wrapped_text(line.text, kColumns, 2);
  }
  return out;
}

std::string legend(const PolicyStudy& study) {
  const auto any = [&](const auto& is) {
    return std::any_of(study.traces.begin(), study.traces.end(), is);
  };
  std::string out =
      "Policies with their frameworks' settings, best first, on the recorded gradients (open loop: "
      "the weights are not trained again). Lost: all gradients of a skipped step, and all after "
      "training ends or a weight is spoiled";
  const std::size_t tables = study.series.flushed.size();
  out += tables == 0
             ? "; flushed gradients of other steps are unknown."
             : fmt::format("; of other steps the share flushed to zero, averaged over {}.",
                           tables == 1 ? "the one step with histograms"
                                       : text::count_text(tables) + " steps with histograms");
  if (any([](const Trace& trace) { return !trace.applied_nonfinite.empty(); })) {
    out += " Spoiled: NaN or infinity enters the weights instead of being skipped.";
  }
  out = text::wrapped_text(out, kColumns, 0);
  if (any([](const Trace& trace) { return !trace.unknown.empty(); })) {
    out += text::wrapped_text(text::unknown_steps_text(), kColumns, 0);
  }
  return out;
}

/// Whether a trap concerns the run, the policy that was tuned, or one that was asked for.
bool concerns(const analyzers::replay::Trap& trap, const PolicyStudy& study, bool asked) {
  return asked || trap.policy == "recorded" || (study.tuned && trap.policy == study.tuned->name);
}

std::string traps(const PolicyStudy& study, bool asked) {
  PolicyStudy shown;
  std::set<std::string> others;
  shown.series.from_magnitudes = study.series.from_magnitudes;
  for (const analyzers::replay::Trap& trap : study.traps) {
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
        fmt::format("Pitfalls of other policies: {}. --policy NAME shows one, --json all.",
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

std::string policies_text(const PolicyStudy& study, const std::string& framework, bool asked) {
  return heading(study) + paragraphs(text::answer_lines(study, framework)) + "\n" + legend(study) +
         "\n" + table(study) + traps(study, asked);
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

}  // namespace halfscope::cli::terminal
