// SPDX-License-Identifier: Apache-2.0
// The answer to a study as data: what the terminal, the page, Markdown, JSON and Python show. All
// sentences are made here; a renderer only lays them out. Strings may have marks (text.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/section.hpp"
#include "reports/answer/snippets.hpp"

namespace halfscope::reports::answer {

/// A key number of an answer, shown at its top.
struct Number {
  enum class Kind : std::uint8_t { lost, kept, limit, use };
  Kind kind = Kind::kept;
  std::string title, value, detail;
};
std::string_view name_of(Number::Kind kind);

/// Title above Answer::details.
inline constexpr std::string_view kDetailsTitle = "Evidence for the scale";

struct Answer {
  /// The most harmful finding, if no loss scale prevents its harm or no scale can be recommended.
  std::optional<Finding> lead;
  std::string scale;  ///< about the loss scale; empty if `lead` says all
  /// The lost shares, the scale to use, and the gradient that limits it.
  std::vector<Number> numbers;
  std::vector<Finding> findings;  ///< most severe first, without `lead`
  std::string clear;  ///< sentence if nothing harms training, as far as the log shows; else empty
  std::vector<Snippet> snippets;   ///< lines to paste; empty if no loss scale helps the run
  std::vector<PasteLines> pastes;  ///< lines that do not set a loss scale
  bool dynamic_first = false;  ///< true if PyTorch's dynamic lines are advised, not its static ones
  std::vector<std::string> details;  ///< evidence for the scale, one or two sentences each
  std::vector<Table> tables;         ///< evidence for the scale, as tables

  /// Returns the title of `lead` if there is one, else `scale`.
  const std::string& headline() const { return lead ? lead->title : scale; }
  /// Returns the lines that are shown first: `lead` with its action, then `scale`.
  std::vector<std::string> first_lines() const;
};

/// Returns the whole answer. `framework`: the one whose lines the user requested; empty for none.
Answer answer_of(const analyzers::Study& study, std::string_view framework = "");

/// Returns the static or the dynamic lines of the snippet, whichever are advised.
const Lines& first_lines_of(const Snippet& snippet, const Answer& answer);

/// Returns Answer::details and Answer::tables; in answer_evidence.cpp.
std::vector<std::string> details(const analyzers::Study& study);
std::vector<Table> tables(const analyzers::Study& study);

/// Returns the sections of a study, without what the answer itself contains (answer.hpp).
std::vector<Section> evidence_sections(const analyzers::Study& study);

/// Returns the sections that `analyze` shows, without a recommendation. The first is about tensors.
std::vector<Section> findings_sections(const analyzers::Findings& found);

/// Returns the sections about policies replayed over a log. `asked`: the value of --framework,
/// empty without it. `chosen`: true if the user selected policies by name.
std::vector<Section> replay_sections(const analyzers::replay::PolicyStudy& study,
                                     std::string_view asked, bool chosen);

}  // namespace halfscope::reports::answer
