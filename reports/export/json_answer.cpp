// SPDX-License-Identifier: Apache-2.0
// The answer's sentences as JSON, without marks.
#include "reports/answer/answer.hpp"
#include "reports/answer/marks.hpp"
#include "reports/export/json_parts.hpp"

namespace halfscope::reports::exports {

void put_answer(Json& to, const analyzers::Study& study) {
  const answer::Answer answer = answer::answer_of(study);
  Json json;
  json["headline"] = answer::plain(answer.headline());
  if (answer.lead) {
    if (!answer.lead->action.empty()) json["action"] = answer::plain(answer.lead->action);
    json["severity"] = answer::name_of(answer.lead->severity);
    json["evidence"] = answer::name_of(answer.lead->evidence);
  }
  if (!answer.scale.empty()) json["scale"] = answer::plain(answer.scale);
  if (const answer::Snippet* const snippet = first_snippet(answer, study)) {
    json["paste"] = first_lines_of(*snippet, answer).lines;
  }
  if (!answer.clear.empty()) json["clear"] = answer::plain(answer.clear);
  json["findings"] = Json::array();
  for (const answer::Finding& finding : answer.findings) {
    Json entry = {{"severity", answer::name_of(finding.severity)},
                  {"title", answer::plain(finding.title)}};
    if (!finding.action.empty()) entry["action"] = answer::plain(finding.action);
    entry["evidence"] = answer::name_of(finding.evidence);
    json["findings"].push_back(std::move(entry));
  }
  to["answer"] = std::move(json);
}

}  // namespace halfscope::reports::exports
