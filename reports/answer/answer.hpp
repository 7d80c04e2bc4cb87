// SPDX-License-Identifier: Apache-2.0
// The answer, as data: what terminal, page, Markdown, JSON and Python show of a study. All
// sentences are made here; a renderer lays them out. Text has marks (marks.hpp).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyzers/study.hpp"
#include "reports/answer/finding.hpp"
#include "reports/answer/section.hpp"
#include "reports/answer/snippets.hpp"
#include "reports/answer/table.hpp"

namespace halfscope::reports::answer {

/// A number that people look for first.
struct Number {
  enum class Kind : std::uint8_t { lost, kept, limit, use };
  Kind kind = Kind::kept;
  std::string title, value, detail;
};
std::string_view name_of(Number::Kind kind);

/// Above Answer::details.
inline constexpr std::string_view kDetailsTitle = "Evidence for the scale";

struct Answer {
  /// What harms most, where no loss scale brings it back, or where none can be recommended.
  std::optional<Finding> lead;
  std::string scale;                 ///< sentences on the loss scale; none where the lead says all
  std::vector<Number> numbers;       ///< what is lost, what to use, what limits it
  std::vector<Finding> findings;     ///< in order of harm, without the lead
  std::string clear;                 ///< said where nothing harms: no more than the log can show
  std::vector<Snippet> snippets;     ///< lines to paste; none of a run that no scale helps
  std::vector<PasteLines> pastes;    ///< other lines than those of a loss scale
  bool dynamic_first = false;        ///< of these, the dynamic ones are what is advised
  std::vector<std::string> details;  ///< what the scale rests on, a sentence or two each
  std::vector<Table> tables;         ///< the same, as tables

  /// The first sentence.
  const std::string& headline() const { return lead ? lead->title : scale; }
  /// What stands before all else, a line each: the lead with its action, the scale.
  std::vector<std::string> first_lines() const;
};

/// The whole of it. framework: whose lines are asked for; empty is as the run has it.
Answer answer_of(const analyzers::Study& study, std::string_view framework = "");

/// The lines that a reader pastes first: those of a framework, of the run's own policy, or
/// PyTorch's. Null where there are none.
const Snippet* first_snippet(const Answer& answer, const analyzers::Study& study,
                             std::string_view framework = "");
/// Of a snippet, the static lines or the dynamic ones.
const Lines& first_lines_of(const Snippet& snippet, const Answer& answer);

}  // namespace halfscope::reports::answer
