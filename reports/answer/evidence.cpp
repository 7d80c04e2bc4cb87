// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/evidence.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "reports/answer/formats_section.hpp"
#include "reports/answer/overflow_section.hpp"
#include "reports/answer/peaks_words.hpp"
#include "reports/answer/policies_section.hpp"
#include "reports/answer/policy_words.hpp"
#include "reports/answer/quantised_words.hpp"
#include "reports/answer/ranks_words.hpp"
#include "reports/answer/reduction_words.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/tensor_words.hpp"
#include "reports/answer/timeline_words.hpp"
#include "reports/answer/updates_section.hpp"

namespace halfscope::reports::answer {
namespace {

void add(std::vector<Section>& to, std::vector<Section> more) {
  std::move(more.begin(), more.end(), std::back_inserter(to));
}

void add(std::vector<Section>& to, Section section) {
  if (!section.empty()) to.push_back(std::move(section));
}

/// Returns a section with only a table.
Section table_section(Table table) {
  Section section;
  if (!table.empty()) section.tables.push_back(std::move(table));
  return section;
}

/// Returns a section with all lines to paste in one block, below the sentences.
Section lines_section(const std::vector<AnswerLine>& lines) {
  Section section;
  for (const AnswerLine& line : lines) {
    if (line.text.empty()) continue;
    switch (line.kind) {
      case AnswerLine::Kind::sentence: section.sentences.push_back(line.text); break;
      case AnswerLine::Kind::label:
        section.pastes.push_back({line.text.substr(0, line.text.size() - 1), ""});
        break;
      case AnswerLine::Kind::paste: {
        std::string& block = section.pastes.back().lines;  // below the label
        block += (block.empty() ? "" : "\n") + line.text;
      }
    }
  }
  return section;
}

Section pitfalls_section(const analyzers::replay::PolicyStudy& study, bool chosen) {
  const std::vector<PitfallWords> all = pitfalls(study, chosen);
  Section section{"Pitfalls"};
  for (const PitfallWords& words : all) {
    if (!words.concerns) continue;
    section.sentences.push_back(fmt::format("{}: {}", fmt::join(words.names, ", "), words.text));
  }
  const std::string others = other_pitfalls_text(all);
  if (!others.empty()) section.sentences.push_back(others);
  return section;
}

}  // namespace

std::vector<Section> evidence_sections(const analyzers::Study& study) {
  std::vector<Section> out = differing_ranks(study);
  add(out, quantised_sections(study));
  add(out, timeline_sections(study));
  add(out, updates_section(study.analysis, all_tensors(study.analysis)));
  add(out, event_sections(study));
  add(out, table_section(headroom_table(study)));
  for (const auto& replayed : study.policies) add(out, policies_section(replayed));
  add(out, formats_section(study));
  add(out, reduction_section(study.reductions));
  return out;
}

std::vector<Section> findings_sections(const analyzers::Findings& found) {
  std::vector<Section> out;
  if (!found.analysis.tensors().empty()) {
    Section tensors = table_section(tensors_table(found.analysis));
    tensors.sentences = tensors_sentences(found);
    add(out, std::move(tensors));
  }
  add(out, table_section(peaks_table(found)));
  add(out, ranks_sections(found));
  add(out, quantised_sections(found));
  add(out, timeline_sections(found));
  add(out, updates_section(found.analysis, all_tensors(found.analysis)));
  add(out, formats_section(found));
  return out;
}

std::vector<Section> replay_sections(const analyzers::replay::PolicyStudy& study,
                                     std::string_view asked, bool chosen) {
  std::vector<Section> out;
  Section lines = lines_section(answer_lines(study, asked));
  lines.title = policies_heading(study);
  add(out, std::move(lines));
  add(out, policies_section(study));
  add(out, pitfalls_section(study, chosen));
  return out;
}

}  // namespace halfscope::reports::answer
