// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_answer.hpp"

#include <fmt/format.h>

#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <set>
#include <vector>

#include "cli/terminal/text_table.hpp"
#include "reports/answer/comparison.hpp"
#include "reports/answer/gaps.hpp"
#include "reports/answer/policies.hpp"
#include "reports/answer/text.hpp"
#include "reports/answer/timeline.hpp"

namespace halfscope::cli::terminal {

namespace text = reports::answer;
using analyzers::Study;
using analyzers::replay::PolicyStudy;
using text::Answer;
using text::ComparisonAnswer;
using text::Finding;
using text::plain;
using text::Section;
using text::Snippet;
using text::wrapped_text;

namespace {

constexpr std::size_t kFindingsShown = 4;

std::size_t lines_in(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count(text, '\n'));
}

std::string bullet(const std::string& sentence, std::size_t columns) {
  return wrapped_text("* " + plain(sentence), columns, 2);
}

std::string first_text(const Answer& answer, std::size_t columns) {
  std::string out;
  for (const std::string& line : answer.first_lines()) {
    out += wrapped_text(plain(line), columns, 0);
  }
  return out;
}

/// Returns the lines to paste that do not set a loss scale.
std::string other_pastes(const Answer& answer) {
  std::string out;
  for (const text::PasteLines& paste : answer.pastes) out += paste_text(paste);
  return out;
}

/// Returns one framework's lines, indented, between empty lines; an empty string if there are none.
std::string paste_text(const Answer& answer, const Study& study, std::string_view framework) {
  const Snippet* const snippet = snippet_of(answer.snippets, study, framework);
  if (snippet == nullptr) return other_pastes(answer);
  const text::Lines& lines = first_lines_of(*snippet, answer);
  std::string out = text::indented_text(lines.lines, 2);
  if (snippet->framework != "pytorch" && !lines.note.empty()) {
    out += fmt::format("\n\n{}: {}", snippet->label, lines.note);
  }
  return fmt::format("\n{}\n{}\n", out, other_pastes(answer));
}

/// Returns as many findings as fit into `room` lines, at most kFindingsShown.
std::string some_findings(const Answer& answer, std::size_t room, std::size_t columns) {
  std::string out;
  std::size_t shown = 0;
  for (const Finding& finding : answer.findings) {
    const std::string text = bullet(text_of(finding), columns);
    if (shown == kFindingsShown || lines_in(out) + lines_in(text) + 1 > room) break;
    out += text;
    ++shown;
  }
  const std::size_t left = answer.findings.size() - shown;
  return left == 0 ? out : out + fmt::format("  and {}\n", text::plural(left, "more finding"));
}

/// Returns the loss scale's history if the log has no tensors.
std::string history_text(const Study& study, std::size_t room) {
  if (!study.analysis.tensors().empty()) return "";
  const std::string text = sections_text(text::timeline_sections(study));
  return lines_in(text) <= room ? text : "";
}

/// Number of gaps shown as sentences; the others are listed by name.
constexpr std::size_t kGapsShown = 3;

text::Section section_of(const text::LogGaps& gaps, bool several_logs) {
  text::Section section{title_of(gaps, several_logs)};
  std::vector<std::string> others;
  for (const text::Unknown& unknown : gaps.unknown) {
    if (section.sentences.size() < kGapsShown) {
      section.sentences.push_back(unknown.text);
    } else {
      others.emplace_back(unknown.what);
    }
  }
  if (!others.empty())
    section.sentences.push_back(fmt::format("Nor: {}.", fmt::join(others, "; ")));
  return section;
}

std::string recording_text(const text::Recording& recording) {
  return text::wrapped_text(recording.sentence(), kTextColumns, 2) +
         text::indented_text(recording.lines, 2) + "\n";
}

/// Wraps long lines, except lines to paste.
std::string answer_text(const text::Section& answer) {
  std::string out;
  for (const std::string& sentence : answer.sentences) {
    out += text::wrapped_text(sentence, kTextColumns, 2);
  }
  for (const text::PasteLines& paste : answer.pastes) {
    out += text::wrapped_text(paste.label + ":", kTextColumns, 2) + "\n" +
           text::indented_text(paste.lines, 2) + "\n";
    if (!paste.note.empty()) out += "\n" + text::wrapped_text(paste.note, kTextColumns, 2);
  }
  return out;
}

std::string pitfalls_text(const PolicyStudy& study, bool asked) {
  const std::vector<text::PitfallWords> pitfalls = text::pitfalls(study, asked);
  text::Section section{"Pitfalls"};
  for (const text::PitfallWords& words : pitfalls) {
    if (!words.concerns) continue;
    section.sentences.push_back(fmt::format("{}: {}", fmt::join(words.names, ", "), words.text));
  }
  std::string out = section.empty() ? "" : "\n" + section_text(section);
  const std::string others = text::other_pitfalls_text(pitfalls);
  return others.empty() ? out
                        : out + "\n" + text::wrapped_text(text::plain(others), kTextColumns, 0);
}

std::string value_text(const policy::Policy& policy) {
  const std::string all = policy::text_of(policy);
  const std::size_t comma = all.find(',');
  return comma == std::string::npos ? "(no settings)" : all.substr(comma + 1);
}

}  // namespace

std::size_t columns_of_stdout() {
  constexpr std::size_t kWidest = 100, kNarrowest = 40;
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) {
    return kUnwrapped;
  }
  return size.ws_col == 0 ? kWidest : std::clamp<std::size_t>(size.ws_col, kNarrowest, kWidest);
}

std::string short_text(const Answer& answer, const Study& study, std::string_view framework,
                       std::string_view more, std::size_t columns) {
  std::string out = first_text(answer, columns) + paste_text(answer, study, framework);
  if (!answer.clear.empty()) out += wrapped_text(answer.clear, columns, 0);
  const std::string end = wrapped_text(more, columns, 0);
  const auto room = [&] {
    return kMostLines - std::min(kMostLines, lines_in(out) + lines_in(end));
  };
  out += history_text(study, room());
  return out + some_findings(answer, room(), columns) + end;
}

std::string long_text(const Answer& answer, const Study& study, std::string_view framework,
                      std::size_t columns) {
  std::string out = first_text(answer, columns) + paste_text(answer, study, framework);
  if (!answer.clear.empty()) out += wrapped_text(answer.clear, columns, 0);
  for (const Finding& finding : answer.findings) out += bullet(text_of(finding), columns);
  if (!answer.details.empty()) out += fmt::format("\n{}:\n", text::kDetailsTitle);
  for (const std::string& detail : answer.details) out += bullet(detail, columns);
  for (const text::Table& table : answer.tables) out += "\n" + table_text(table);
  return out;
}

std::string comparison_text(const analyzers::compare::Comparison& comparison) {
  const ComparisonAnswer said = text::comparison_answer(comparison);
  const auto line = [](const std::string& sentence) {
    return text::wrapped_text(plain(sentence), columns_of_stdout(), 0);
  };
  std::string out = fmt::format("A: {}\nB: {}\n", plain(said.a), plain(said.b)) +
                    line(said.counted_for) + "\n" + line(said.verdict);
  if (!said.sums.empty()) out += "\n" + section_text(said.sums) + "\n";
  out += section_text(Section{"", said.reasons}) + "\n";
  if (!said.stored.empty()) out += section_text(said.stored) + "\n";
  out += table_text(said.facts) + "\n" + section_text(Section{"", said.values});
  if (!said.losses.empty()) out += section_text(Section{"", {said.losses}});
  for (const Section& run : said.operations) out += "\n" + section_text(run);
  return out + "\n" + table_text(said.tensors);
}

std::string gaps_text(const analyzers::underflow::Analysis& analysis) {
  const std::vector<text::LogGaps> all = text::could_not_tell(analysis);
  std::string out;
  std::set<std::string> lines;
  for (const text::LogGaps& gaps : all) {
    out += "\n" + section_text(section_of(gaps, all.size() > 1));
    lines.insert(recording_text(gaps.recording));
  }
  for (const std::string& recording : lines) out += recording;
  return out;
}

std::string policies_text(const PolicyStudy& study, const std::string& framework, bool asked) {
  return text::policies_heading(study) + "\n\n" +
         answer_text(text::replay_answer(study, framework)) + "\n" +
         section_text(text::policies_section(study)) + pitfalls_text(study, asked);
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

std::string choices_text() {
  std::string out;
  for (const text::Table& table : simulate::choices()) out += table_text(table);
  return out;
}

std::string simulation_text(const simulate::Simulation& said) {
  std::string out;
  for (const std::string& sentence : said.first) {
    out += text::wrapped_text(text::plain(sentence), columns_of_stdout(), 0);
  }
  for (const text::Section& section : said.sections) {
    if (!section.empty()) out += "\n" + section_text(section);
  }
  return out + "\n" + said.next + "\n";
}

}  // namespace halfscope::cli::terminal
