// SPDX-License-Identifier: Apache-2.0
#include "reports/answer/answer.hpp"

#include "reports/answer/answer_parts.hpp"
#include "reports/answer/findings.hpp"
#include "reports/answer/first_words.hpp"
#include "reports/answer/quantised_words.hpp"
#include "reports/answer/scale_words.hpp"

namespace halfscope::reports::answer {

using analyzers::Study;

namespace {

/// Returns true if the finding is shown before the loss scale: no scale prevents it, or there is no
/// recommended scale and the finding says what happened to the run.
bool leads(const Study& study, const Finding& worst) {
  if (study.advice.may_use && !study.ends_broken()) return false;  // may_use is answered first
  if (worst.severity == Severity::breaks) return true;
  // Statistics of FP8 come from a run in BF16, which needs no loss scale.
  if (worst.evidence == Evidence::quantised && worst.severity != Severity::note) return true;
  const bool of_the_run =
      worst.evidence == Evidence::overflow || worst.evidence == Evidence::timeline ||
      worst.evidence == Evidence::quantised || worst.evidence == Evidence::policies;
  return of_the_run && !study.advice.static_log2;
}

}  // namespace

std::vector<std::string> Answer::first_lines() const {
  std::vector<std::string> lines;
  if (lead) lines.push_back(lead->title + (lead->action.empty() ? "" : " ") + lead->action);
  if (!scale.empty()) lines.push_back(scale);
  return lines;
}

Answer answer_of(const Study& study, std::string_view framework) {
  Answer out;
  out.findings = findings(study);
  const bool fine = (framework.empty() || framework == "pytorch") && default_fine(study);
  out.scale = scale_sentence(study, fine);
  if (!out.findings.empty() && leads(study, out.findings.front())) {
    out.lead = std::move(out.findings.front());
    out.findings.erase(out.findings.begin());
  }
  if (!out.lead && (out.findings.empty() || out.findings.front().severity == Severity::note)) {
    out.clear = clear_text(study);
  }
  out.numbers = numbers(study);
  if (study.beyond_scales().empty() && !serves_nothing(study.advice))
    out.snippets = snippets(study);
  out.pastes = keep_pastes(study);
  out.dynamic_first = fine;
  out.details = details(study);
  out.tables = tables(study);
  return out;
}

const Snippet* first_snippet(const Answer& answer, const Study& study, std::string_view framework) {
  return snippet_of(answer.snippets, study, framework);
}

const Lines& first_lines_of(const Snippet& snippet, const Answer& answer) {
  const bool dynamic =
      answer.dynamic_first && snippet.policy == "torch" && !snippet.dynamic.lines.empty();
  return dynamic ? snippet.dynamic : snippet.first();
}

}  // namespace halfscope::reports::answer
