// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/text_policies.hpp"

#include <fmt/format.h>

#include <vector>

#include "cli/terminal/text_section.hpp"
#include "cli/terminal/text_table.hpp"
#include "reports/answer/marks.hpp"
#include "reports/answer/policies_section.hpp"
#include "reports/answer/policy_words.hpp"
#include "reports/answer/text.hpp"

namespace halfscope::cli::terminal {
namespace {

namespace text = reports::answer;
using analyzers::replay::PolicyStudy;

/// Wraps long lines, except lines to paste.
std::string paragraphs(std::vector<text::AnswerLine> lines) {
  while (!lines.empty() && lines.back().text.empty()) lines.pop_back();
  std::string out;
  for (const text::AnswerLine& line : lines) {
    out += line.kind == text::AnswerLine::Kind::paste
               ? "  " + line.text + "\n"
               : text::wrapped_text(line.text, kTextColumns, 2);
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

std::string policies_text(const PolicyStudy& study, const std::string& framework, bool asked) {
  return text::policies_heading(study) + "\n\n" + paragraphs(text::answer_lines(study, framework)) +
         "\n" + section_text(text::policies_section(study)) + pitfalls_text(study, asked);
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
