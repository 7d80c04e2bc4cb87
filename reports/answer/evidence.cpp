// SPDX-License-Identifier: Apache-2.0
// The evidence for an answer as sections, in the order of the page, for Markdown and notebooks.
#include "reports/answer/answer.hpp"

#include <fmt/format.h>

#include <iterator>
#include <utility>

#include "reports/answer/formats.hpp"
#include "reports/answer/overflow.hpp"
#include "reports/answer/policies.hpp"
#include "reports/answer/quantised.hpp"
#include "reports/answer/ranks.hpp"
#include "reports/answer/recipes.hpp"
#include "reports/answer/reduction.hpp"
#include "reports/answer/series.hpp"
#include "reports/answer/tensors.hpp"
#include "reports/answer/timeline.hpp"
#include "reports/answer/updates.hpp"

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
  section.add(std::move(table));
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
  add(out, recipes_section(study));
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
  add(out, recipes_section(found));
  return out;
}

std::vector<Section> replay_sections(const analyzers::replay::PolicyStudy& study,
                                     std::string_view asked, bool chosen) {
  std::vector<Section> out;
  Section answer = replay_answer(study, asked);
  answer.title = policies_heading(study);
  for (PasteLines& paste : answer.pastes) {
    if (!paste.note.empty()) answer.sentences.push_back(std::exchange(paste.note, ""));
  }
  add(out, std::move(answer));
  add(out, policies_section(study));
  add(out, pitfalls_section(study, chosen));
  return out;
}

}  // namespace halfscope::reports::answer
